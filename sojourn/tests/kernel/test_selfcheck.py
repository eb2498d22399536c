"""The self-check of a guest. A Run with an invalid measurement is kept, and shown as invalid
everywhere."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sojourn import engine as engines
from sojourn import metrics, report
from sojourn.arrays import Ints
from sojourn.cli import status
from sojourn.engine.kernel.observed import selfcheck
from sojourn.engine.kernel.observed.archive import Archive
from sojourn.engine.kernel.plan import guest_plan as planning
from sojourn.engine.kernel.plan import known_traffic as planned
from sojourn.engine.kernel.plan.guest_plan import Machine, plan
from sojourn.records import Run
from sojourn.scenario import loads
from sojourn.scenario.realised import Realised

MS = 10**6
SIMNIC = Machine("simnic", own=True, ipv6=False)
VETH = Machine("veth", own=True, ipv6=True)

SCENARIO = """
title = "two seconds"
duration = "2 s"
warmup = "1 s"

[bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
qdisc = "codel"
loss = "1 %"
up.rate = "10 Mbit/s"
up.ring = 64

[[flow]]
kind = "bulk"

[[flow]]
kind = "ping"
"""


def realised(**changes: Any) -> Realised:
    return (
        loads(SCENARIO)
        .with_({key.replace("__", "."): value for key, value in changes.items()})
        .realise(1)
    )


# ------------------------------------------------------------------------------------- the checks


def test_the_fastest_link_is_made_once_more_without_what_is_drawn() -> None:
    check = planned.scenario(realised(), False)
    for link in check.links:
        assert [(step.at_ns, step.bps) for step in link.rate] == [(0, 10_000_000)]
        assert (link.delay_ns, link.ring, link.loss) == (10 * MS, None, None)
        assert link.qdisc.kind == "pfifo"
    idle, full = check.flows
    # Pings return before the link is filled; it is empty again at the end.
    assert idle.stop_ns + 4 * check.links[0].delay_ns < full.start_ns
    offered = full.traffic.bps * (full.stop_ns - full.start_ns) / 1e9
    assert offered < 10e6 * (check.duration_ns - full.start_ns) / 1e9


def test_a_link_of_any_rate_is_full_for_some_packets_and_not_for_long() -> None:
    for rate in ("10 kbit/s", "1 Mbit/s", "100 Mbit/s", "10 Gbit/s"):
        for real_time, most in ((True, 10_001), (False, 601)):
            check = planned.scenario(
                realised(bottleneck__rate=rate, bottleneck__up__rate=rate), real_time
            )
            full = check.flows[1]
            packets = full.traffic.bps * (full.stop_ns - full.start_ns) / 1e9 / 12_000
            assert 20 <= packets <= most
            assert check.duration_ns < 1000 * MS


@pytest.mark.parametrize("burst", ["1600b", "15k", "1mb"])
def test_a_shaper_s_burst_is_spent_before_half_of_the_time_is_over(burst: str) -> None:
    change = {"bottleneck__up": None, "bottleneck__rate": "unlimited"}
    check = planned.scenario(
        realised(**change, bottleneck__shaper=f"htb rate 7mbit burst {burst}"), False
    )
    shaper, full = check.links[0].shaper, check.flows[1]
    took = (full.stop_ns - full.start_ns) / 1e9
    beyond = (full.traffic.bps - shaper.bps) / 8
    assert shaper.burst_bytes / beyond < 0.6 * took
    # All of the check's traffic has left before the end.
    assert beyond * took - shaper.burst_bytes < (check.duration_ns / 1e9 - took) * shaper.bps / 8


def test_a_scenario_without_a_queue_still_has_a_link_to_check() -> None:
    check = planned.scenario(
        realised(bottleneck__rate="unlimited", bottleneck__up=None, bottleneck__loss=None), False
    )
    assert check.links[0].rate[0].bps == planned.USUAL_BPS


@pytest.mark.parametrize("machine", [SIMNIC, VETH])
def test_the_self_check_has_its_own_namespaces_devices_and_cards(machine: Machine) -> None:
    planned = plan(realised(bottleneck__up__ring=None), machine)
    check = planned.plan["check"]
    assert not set(check["namespaces"]) & set(planned.plan["namespaces"])
    own, whole = (
        {tap["card"] for tap in each["taps"]}
        if machine is SIMNIC
        else {
            point["device"]
            for tap in each["taps"]
            for stage in tap["seen"]["stages"]
            for point in stage["points"]
        }
        for each in (check, planned.plan)
    )
    assert own
    assert not own & whole
    if machine is SIMNIC:
        numbers = {
            int(line.split()[3].removeprefix("nic")[:-1])
            for each in (check, planned.plan)
            for step in each["setup"]
            if step["do"] == "run" and step["namespace"] is None
            for line in step["stdin"].splitlines()
        }
        assert numbers == set(range(planned.pairs))


# --------------------------------------------------------------------------------- their findings


def checked(
    late_ns: int = 0, lost: int = 0, gap_ns: int = 1_200_000, packets: int = 100, waits: bool = True
) -> Archive:
    """The self-check of a 10 Mbit/s link with 10 ms each way: pings are `late_ns` late or lost, and
    packets of 1500 bytes leave `gap_ns` apart."""
    base = 20 * MS + 2 * 84 * 800
    sent = np.arange(planned.PINGS, dtype=np.int64) * planned.EVERY_NS
    back = sent + base + late_ns
    back[:lost] = -1
    after = planned.IDLE_NS + np.arange(1, packets + 1, dtype=np.int64) * gap_ns
    before = after - (5 * MS if waits else 0)
    zero = np.zeros(packets, dtype=np.int64)
    tap: dict[str, Ints] = {
        "t_before_ns": before,
        "t_after_ns": after,
        "flow": zero + 1,
        "reverse": zero,
    }
    tap |= {"bytes": zero + 1500, "ds_in": zero, "ds_out": zero, "t_gone_ns": zero - 1}
    tap |= dict.fromkeys(("refused", "hash", "truesize", "after", "order"), zero)
    stages = [{"name": "log", "lost_records": 0, "unexpected": 0}]
    index = {
        "taps": [{"link": 0, "stages": stages}],
        "flows": [{"name": "idle", "error": None, "errors": 0}],
        "clock_stepped_ns": 0,
        "lost_headers": 0,
        "duration_ns": 300 * MS,
        "processor": {
            "start": dict.fromkeys(("user", "idle", "iowait"), 0),
            "end": {"user": 60, "idle": 40, "iowait": 0},
        },
    }
    probes = {"flow": zero[: len(sent)], "sent_ns": sent, "received_ns": back}
    return Archive({}, {}, b"", Archive(index, {"probes": probes, "tap0": tap}))


def said(archive: Archive, kind: str = "uml") -> Sequence[str]:
    return list(selfcheck.doubts(realised(), archive, kind))


def test_a_guest_that_keeps_time_is_trusted() -> None:
    assert said(checked()) == []
    # In virtual time a busy processor takes no time.
    assert said(checked(late_ns=40_000)) == []


@pytest.mark.parametrize(
    ("archive", "kind", "words"),
    [
        (checked(late_ns=MS), "uml", "an idle round trip took 21.134 ms and should take 20.134 ms"),
        (checked(late_ns=-MS), "uml", "an idle round trip took 19.134 ms"),
        (checked(late_ns=6 * MS), "host", "an idle round trip took 26.134 ms"),
        (checked(lost=6), "uml", "of 8 pings over an idle link 2 came back"),
        (checked(gap_ns=1_300_000), "uml", "a full link sent 7.7% less than its rate"),
        (checked(gap_ns=1_100_000), "host", "a full link sent 9.1% more than its rate"),
        (checked(waits=False), "host", "had packets waiting for 0.0 ms"),
        (checked(), "qemu", "the guest's processor was 60% busy"),
        (Archive({}, {}), "uml", "it was not made"),
    ],
)
def test_a_guest_that_does_not_keep_time_is_detected(
    archive: Archive, kind: str, words: str
) -> None:
    (reason,) = said(archive, kind)
    assert reason.startswith("self-check: ")
    assert words in reason


# --------------------------------------------------------------------------------- an invalid Run


Change = Callable[[dict[str, Any]], None]


def slower(made: dict[str, Any]) -> None:
    """The check's cards send at nine tenths of the rate in the plan."""
    steps = [step for step in made["check"]["setup"] if step.get("path", "").endswith("/rate_bps")]
    assert len(steps) == 2
    for step in steps:
        step["text"] = str(int(step["text"]) * 9 // 10)


def longer(made: dict[str, Any]) -> None:
    """The check's cards add a delay of a millisecond."""
    for step in made["check"]["setup"]:
        if step.get("path", "").endswith("/delay_ns") and int(step["text"]):
            step["text"] = str(int(step["text"]) + MS)


def run_with(change: Change, engine: str, out: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A Run whose plan was changed before the guest got it."""
    unchanged = planning.plan

    def changed(*arguments: Any) -> planning.Planned:
        planned = unchanged(*arguments)
        change(planned.plan)
        return planned

    monkeypatch.setattr(planning, "plan", changed)
    return engines.run(
        loads(SCENARIO).with_({"bottleneck.loss": None, "bottleneck.up.rate": "100 Mbit/s"}),
        engine=engine,
        out=out,
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (slower, "self-check: a full link sent 10.0% less than its rate"),
        (longer, "self-check: an idle round trip took 22."),
    ],
)
def test_a_guest_that_does_not_keep_time_makes_the_run_invalid(
    change: Change, words: str, kernel_uml: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_with(change, kernel_uml, tmp_path / "run", monkeypatch)
    assert [reason for reason in run.meta.invalid if reason.startswith(f"seed 1: {words}")]
    # The invalid Run still has its tables.
    assert run.seeds == (1,)
    assert run.table("links")["sent_packets"].sum() > 0
    assert Run.open(tmp_path / "run").meta.invalid == run.meta.invalid


def test_a_guest_that_keeps_time_makes_a_valid_run(kernel_uml: str, tmp_path: Path) -> None:
    run = engines.run(loads(SCENARIO), engine=kernel_uml, out=tmp_path / "run")
    assert run.meta.invalid == ()
    assert metrics.summary(run).to_dict()["invalid"] == []


def test_a_shaper_with_a_burst_makes_a_valid_run(kernel_uml: str) -> None:
    # The burst of tc-htb(8)'s examples: 17 ms at this rate; the link is full for a tenth of a
    # second.
    change = {"bottleneck.up": None, "bottleneck.rate": "unlimited", "bottleneck.loss": None}
    shaped = loads(SCENARIO).with_({**change, "bottleneck.shaper": "htb rate 7mbit burst 15k"})
    assert engines.run(shaped, engine=kernel_uml).meta.invalid == ()


def invalid(folder: Path) -> Path:
    """A Run of the simulator that is marked invalid."""
    engines.run(loads(SCENARIO), out=folder)
    meta: Mapping[str, Any] = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(
        json.dumps({**meta, "invalid": ["seed 1: a <clock> was wrong"]})
    )
    return folder


def test_a_page_shows_first_that_a_run_is_invalid(tmp_path: Path) -> None:
    valid = engines.run(loads(SCENARIO), out=tmp_path / "valid")
    marked = Run.open(invalid(tmp_path / "marked"))
    page = report.render([valid, marked])
    assert page.count("must not be used") == 1
    assert page.index("a &lt;clock&gt; was wrong") < page.index("<h2")
    assert "must not be used" not in report.render([valid])


def test_reasons_are_kept_by_seed_and_replaced_with_it(tmp_path: Path) -> None:
    from small_run import CAUSES, small_meta, small_tables

    run = Run.create(tmp_path / "run", small_meta(), "x")
    run.add_seed(10, small_tables(), CAUSES, 0, ["late", "slow"])
    run.add_seed(2, small_tables(), CAUSES, 0, ["full"])
    assert Run.open(tmp_path / "run").meta.invalid == (
        "seed 2: full",
        "seed 10: late",
        "seed 10: slow",
    )
    run.add_seed(10, small_tables(), CAUSES)
    assert Run.open(tmp_path / "run").meta.invalid == ("seed 2: full",)


def test_the_commands_report_an_invalid_run_and_end_with_1(
    tmp_path: Path,
    kernel_uml: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With a tolerance of -1 ms each idle round trip of the guest is too late."""
    monkeypatch.setitem(selfcheck.LATE_NS, "uml", -MS)
    monkeypatch.chdir(tmp_path)
    Path("scenario.toml").write_text(SCENARIO)

    def say(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        return status(arguments), *capsys.readouterr()

    code, *said = say("run", "scenario.toml", "-e", kernel_uml, "-o", "out")
    assert code == 1
    for words in said:
        assert "INVALID: the numbers of two seconds must not be used" in words
        assert "seed 1: self-check: an idle round trip took" in words
    code, out, err = say("run", "scenario.toml", "-e", kernel_uml, "--json", "-q")
    assert code == 1
    assert json.loads(out)["invalid"][0].startswith("seed 1: self-check")
    assert "INVALID" in err
    code, out, _ = say("compare", "scenario.toml", "pfifo", "codel", "-e", kernel_uml, "--json", "-q")  # fmt: skip
    assert code == 1
    assert all(each["invalid"] for each in json.loads(out)["variants"])
    code, out, _ = say("agree", "scenario.toml", "-e", kernel_uml, "--json", "-q")
    assert code == 1
    assert json.loads(out)["invalid"]
    code, _, err = say("report", "out", "-o", "page.html")
    assert code == 0
    assert "INVALID" in err
    assert "must not be used" in Path("page.html").read_text()
