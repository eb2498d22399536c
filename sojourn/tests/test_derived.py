"""The numbers that follow from a discipline's words, as `tc -s qdisc show` prints them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sojourn import scenario
from sojourn.cli import status
from sojourn.scenario import derived

LINE = """
duration = "10 s"
[bottleneck]
rate = "{rate}"
delay = "20 ms"
qdisc = "{qdisc}"
[[flow]]
name = "bulk"
kind = "bulk"
"""


def test_the_tins_of_cake_are_those_that_tc_prints() -> None:
    # tc -s qdisc show of cake bandwidth 10mbit diffserv3 with an MTU of 1514.
    text = LINE.format(rate="100 Mbit/s", qdisc="cake bandwidth 10mbit")
    loaded = scenario.loads(text).with_({"bottleneck.link_layer": "linux"})
    link = loaded.realise(1).links[0]
    assert [line.rstrip() for line in derived.tin_lines(derived.tins(link))] == [
        "                     Bulk  Best Effort        Voice",
        "  thresh          625kbit       10mbit     2500kbit",
        "  target           29.1ms          5ms       7.27ms",
        "  interval          124ms        100ms        102ms",
        "  quantum             300          305          300",
    ]


@pytest.mark.parametrize(
    ("words", "whole"),
    [
        (
            "fq_codel",
            "fq_codel limit 10240 flows 1024 memory_limit 33554432 target 5ms interval 100ms"
            " quantum 1514 drop_batch 64 ecn",
        ),
        (
            "pie",
            "pie limit 1000 target 15ms tupdate 15ms alpha 2 beta 20"
            " noecn nobytemode no_dq_rate_estimator",
        ),
        (
            "red min 30kb max 90kb avpkt 1000 limit 200kb burst 50",
            "red limit 204800 min 30720 max 92160 avpkt 1000 burst 50 probability 0.02"
            " bandwidth 10mbit ewma 5 Scell_log 15",
        ),
    ],
)
def test_check_prints_every_parameter(words: str, whole: str) -> None:
    text = LINE.format(rate="100 Mbit/s", qdisc=words)
    link = scenario.loads(text).realise(1).links[0]
    assert derived.parameters(link) == whole


def test_check_s_json_has_the_tins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "line.toml"
    file.write_text(LINE.format(rate="100 Mbit/s", qdisc="cake bandwidth 10mbit besteffort"))
    assert status(["check", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    [tin] = found["links"][0]["tins"]
    assert (tin["name"], tin["threshold_bps"], tin["target_ms"]) == ("Tin 0", 10_000_000, 5)
