"""A notebook shows a scenario, a Run and a Summary as well-formed, escaped markup with the right
numbers."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import synthetic

import sojourn
from sojourn import figures
from sojourn.scenario import examples, notebook

SCENARIO = """
title = "A <b> & c"
duration = "2 s"
[bottleneck]
delay = "5 ms"
up.rate = "4 Mbit/s"
down.rate = "20 Mbit/s"
[[flow]]
kind = "bulk"
count = 2
start = "uniform 0 s .. 200 ms"
[[flow]]
kind = "ping"
"""
GRAPH = """
title = "A Y"
duration = "2 s"
[[link]]
name = "left"
from = "a"
to = "router"
rate = "10 Mbit/s"
delay = "1 ms"
[[link]]
name = "right"
from = "b"
to = "router"
rate = "10 Mbit/s"
delay = "1 ms"
[[link]]
name = "trunk"
from = "router"
to = "c"
rate = "5 Mbit/s"
delay = "10 ms"
duplex = false
[[link]]
name = "back"
from = "c"
to = "router"
rate = "5 Mbit/s"
delay = "10 ms"
duplex = false
[[flow]]
kind = "ping"
from = "a"
to = "c"
"""


def shown(value: Any) -> ET.Element:
    """Returns the HTML that a notebook shows for a value. Raises ParseError if it isn't
    well-formed."""
    return ET.fromstring(f"<div>{value._repr_html_()}</div>")


def texts(element: ET.Element) -> list[str]:
    return [text for text in element.itertext() if text.strip()]


def nodes(drawn: ET.Element) -> dict[str, tuple[float, float]]:
    """Each node of a topology, and its position."""
    svg = drawn.find("svg")
    assert svg is not None
    words = [each.text or "" for each in svg.findall("text")]
    circles = svg.findall("circle")
    places = [(float(each.attrib["cx"]), float(each.attrib["cy"])) for each in circles]
    return dict(zip(words[len(words) - len(places) :], places, strict=True))


def test_each_entry_of_flows_is_described_with_its_path() -> None:
    assert notebook.senders(sojourn.scenario.loads(SCENARIO)) == [
        "bulk.1 to bulk.2: bulk, net → home across down",
        "ping: ping, home → net across up",
    ]
    (across,) = notebook.senders(sojourn.scenario.loads(GRAPH))
    assert across.startswith("ping: ping, ")
    assert across.endswith("across left, trunk")


def test_a_scenario_shows_its_topology_links_and_flows() -> None:
    drawn = shown(sojourn.loads(SCENARIO))
    assert texts(drawn)[0] == "A <b> & c"
    assert len(nodes(drawn)) == 2
    said = " ".join(texts(drawn))
    assert "up: 4 Mbit/s, 5 ms" in said
    assert "down: 20 Mbit/s, 5 ms" in said
    rows = [[cell.text for cell in row] for row in drawn.findall("table")[1].iter("tr")]
    assert rows == [["flows", "kind", "count"], ["bulk", "bulk", "2"], ["ping", "ping", "1"]]


def test_nodes_are_as_far_apart_as_their_links_and_do_not_overlap() -> None:
    places = nodes(shown(sojourn.loads(GRAPH)))
    assert set(places) == {"a", "b", "c", "router"}
    assert places["a"][0] < places["router"][0] < places["c"][0]
    assert len(set(places.values())) == 4


def ring(links: int) -> sojourn.Scenario:
    """A ring: each node has a link to the next one, and the last to the first."""
    text = 'title = "A ring"\nduration = "2 s"\n[[flow]]\nkind = "ping"\nfrom = "n0"\nto = "n1"\n'
    for i in range(links):
        text += (
            f'[[link]]\nname = "l{i}"\nfrom = "n{i}"\nto = "n{(i + 1) % links}"\nduplex = false\n'
        )
        text += 'rate = "5 Mbit/s"\ndelay = "1 ms"\n'
    return sojourn.loads(text)


def test_forty_links_are_drawn_and_more_are_not() -> None:
    assert notebook.drawn(ring(40)).count("<path") == 40
    assert notebook.drawn(ring(41)) == ""


def test_links_between_the_same_nodes_are_drawn_apart() -> None:
    text = GRAPH.replace('from = "b"', 'from = "a"')
    drawn = ET.fromstring(notebook.drawn(sojourn.loads(text)))
    arrows = [each.attrib["d"] for each in drawn.findall("path")]
    assert len(set(arrows)) == len(arrows) > 2


def test_a_sweep_shows_its_first_variant() -> None:
    swept = sojourn.loads(SCENARIO).with_(sweep={"bottleneck.qdisc": ["codel", "pfifo"]})
    said = " ".join(texts(shown(swept)))
    assert "a sweep of 2 variants" in said
    assert "codel" in said
    assert "pfifo" not in said


@pytest.mark.parametrize("name", sorted(examples.names()))
def test_every_example_can_be_shown(name: str) -> None:
    shown(sojourn.load(name))


def test_a_run_and_its_summary_show_what_they_have(tmp_path: Path) -> None:
    run = sojourn.run(sojourn.loads(SCENARIO), seeds=2, out=tmp_path / "a < b")
    assert "2 of 2 seeds" in " ".join(texts(shown(run)))
    summary = sojourn.summary(run)
    drawn = shown(summary)
    queues, groups, probes = drawn.findall("table")
    rows = {row[0].text: [cell.text for cell in row] for row in queues.iter("tr")}
    goodput = summary.summary["queues"][0]["goodput_mbps"]["mean"]
    assert float(str(rows[summary.summary["queues"][0]["link"]][3]).split()[0]) == pytest.approx(
        goodput, rel=0.06
    )
    assert len(list(groups.iter("tr"))) == 2
    assert len(list(probes.iter("tr"))) == 2


def test_a_figure_shows_itself_as_a_picture(tmp_path: Path) -> None:
    """Tests the method that Jupyter calls on an object at a cell's end, without pyplot and its
    inline backend."""
    run = synthetic.run(tmp_path, synthetic.Shape())
    for figure in (figures.timeline(run), figures.cdf([run], paper=figures.ONE_COLUMN)):
        assert figure._repr_png_().startswith(b"\x89PNG\r\n")  # type: ignore[attr-defined]


def test_pandas_is_asked_for_where_a_frame_is_to_become_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frame = sojourn.sweep(sojourn.loads(SCENARIO), seeds=1)
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pandas|pyarrow"):
        frame.to_pandas()
