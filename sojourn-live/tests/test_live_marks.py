"""Whether ECN and DSCP survive: over loopback, where they do, and through a router in user space
that bleaches, drops and marks."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_network import LiveNetwork, live_network
from test_live_session import plan, served, serving, session_through

from sojourn.facts import SessionFacts, SessionMarks
from sojourn.shapes import read
from sojourn.units import UnitError, parse_dscp
from sojourn_live.measure import marks
from sojourn_live.measure.session import Session, measure

__all__ = ["live_network"]
FORWARDER = str(Path(__file__).parent / "live_forwarder.py")
TCP, UDP, EF = 6, 17, 46
UNSUMMED = "import fcntl, socket, struct, array, sys\n" + (
    # ETHTOOL_STXCSUM, 0: packets leave with their checksums, which a veth omits by default.
    "value = array.array('B', struct.pack('II', 0x17, 0))\n"
    "asked = struct.pack('16sP', b'eth0', value.buffer_info()[0])\n"
    "fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8946, asked)\n"
)


@contextlib.contextmanager
def forwarded(net: LiveNetwork, **rules: dict[str, Any]) -> Iterator[dict[str, dict[str, int]]]:
    """A network with our router. At the end the dict has its sent packets, by direction and
    "protocol field"."""
    net.run("router", "sysctl", "-q", "-w", "net.ipv4.ip_forward=0")
    for host in ("client", "server"):
        net.run(host, sys.executable, "-c", UNSUMMED)
    sent: dict[str, dict[str, int]] = {}
    command = net.command("router", sys.executable, FORWARDER, json.dumps(rules))
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as router:
        assert router.stdout is not None
        assert router.stdout.readline() == "ready\n"
        try:
            with served(net):
                yield sent
            output, _ = router.communicate(timeout=20)
            sent.update(json.loads(output))
        finally:
            router.kill()


def measured(net: LiveNetwork, *phases: tuple[str, float], **more: Any) -> SessionFacts:
    asked = {"ecn": True, "targets": [["udp"]], "streams": 2, **more}
    with session_through(net, phases=[list(phase) for phase in phases], **asked) as session:
        facts = read(SessionFacts, session.result()["facts"])
    assert facts["outcome"] == "complete", facts["why"]
    return facts


def found(facts: SessionFacts) -> marks.PathMarks:
    made = marks.find([facts])
    assert made is not None
    return made


def outcomes(made: marks.PathMarks, direction: str) -> dict[str, str]:
    return {one.field: one.fate for one in made.path if one.direction == direction}


# --------------------------------------------------------------------------------------- loopback


@pytest.fixture(scope="module")
def whole() -> Session:
    with serving() as port:
        return measure(plan(port, ("idle", 0.3), ("download", 0.8), ecn=True))


def test_over_loopback_every_ds_field_survives(whole: Session) -> None:
    made = found(whole.facts)
    assert made.answered
    for way in ("up", "down"):
        assert set(outcomes(made, way).values()) == {"kept"}
        assert list(outcomes(made, way)) == ["Not-ECT", "ECT(0)", "ECT(1)", "CE", "LE", "CS1", "AF41", "NQB", "EF"]  # fmt: skip
    assert all(one.arrived == {one.field: one.sent} for one in made.path)
    said = marks.sentences(made)
    assert said[0] == "ECN survives both ways: ECT(0), ECT(1) and CE arrive as they are sent."
    assert said[1].startswith("DSCP survives both ways: LE, CS1")


def test_the_counts_of_ecn_that_tcp_got_are_among_the_facts(whole: Session) -> None:
    made = found(whole.facts)
    (load,) = made.loads
    assert (load.phase, load.direction, load.streams) == ("download", "down", 2)
    assert load.probes > 15
    assert load.segments > 1000
    assert (load.probes_marked, load.segments_marked) == (0, 0)


def test_without_the_option_no_marks_are_sent() -> None:
    with serving() as port:
        session = measure(plan(port, ("idle", 0.3)))
    assert session.facts["marks"] is None
    assert session.facts["load"]["dscp"] == 0
    assert marks.find([session.facts]) is None


# ------------------------------------------------------------------------------- a router of ours


def test_bleaching_in_one_direction_is_detected_in_that_direction(
    live_network: LiveNetwork,
) -> None:
    rules = {"up": {"keep_ecn": False}, "down": {"keep_dscp": False}}
    with forwarded(live_network, **rules):
        made = found(measured(live_network, ("idle", 0.5)))
    up, down = outcomes(made, "up"), outcomes(made, "down")
    assert {up[name] for name in ("ECT(0)", "ECT(1)", "CE")} == {"changed"}
    assert {up[name] for name in ("Not-ECT", "LE", "CS1", "AF41", "EF")} == {"kept"}
    assert {down[name] for name in ("Not-ECT", "ECT(0)", "ECT(1)", "CE")} == {"kept"}
    assert {down[name] for name in ("LE", "CS1", "AF41", "NQB", "EF")} == {"changed"}
    said = marks.sentences(made)
    assert said == [
        "On the way up ECT(0), ECT(1) and CE arrived as Not-ECT.",
        "ECN survives on the way down.",
        "DSCP survives on the way up.",
        "On the way down LE, CS1, AF41, NQB and EF arrived as CS0.",
    ]


def test_dropped_ds_fields_are_distinguished_from_a_lossy_line(live_network: LiveNetwork) -> None:
    with forwarded(live_network, up={"drop": [1]}):
        made = found(measured(live_network, ("idle", 0.5)))
    assert outcomes(made, "up")["ECT(1)"] == "lost"
    assert outcomes(made, "down")["ECT(1)"] == "kept"
    (said,) = [one for one in marks.sentences(made) if "ECT(1)" in one]
    assert said == "On the way up ECT(1) never arrived, though unmarked packets did."


def test_a_marking_bottleneck_is_detected_by_probes_and_by_tcp(live_network: LiveNetwork) -> None:
    for host in ("client", "server"):
        live_network.run(host, "sysctl", "-q", "-w", "net.ipv4.tcp_ecn=1")
    slow = {"bps": 8_000_000, "mark_ms": 10, "limit_ms": 300}
    with forwarded(live_network, down=slow):
        facts = measured(live_network, ("idle", 0.5), ("download", 4), ("upload", 2))
    made = found(facts)
    assert outcomes(made, "down")["ECT(0)"] == "kept"
    download, upload = made.loads
    assert (download.direction, download.streams, download.streams_ecn) == ("down", 2, 2)
    assert download.probes_marked > 5
    assert 10 < download.segments_marked < download.segments
    # The other direction has no marking queue.
    assert (upload.probes_marked, upload.segments_marked) == (0, 0)
    assert upload.streams_ecn == 2
    said = marks.sentences(made)
    assert any(one.startswith("Under download, on the way down, a queue marks:") for one in said)
    assert any(one.startswith("Under upload, on the way up, no queue marks:") for one in said)


def test_streams_and_probes_carry_the_codepoint_in_both_directions(
    live_network: LiveNetwork,
) -> None:
    with forwarded(live_network) as sent:
        spans = (("idle", 0.5), ("both", 1.5))
        facts = measured(live_network, *spans, ecn=False, dscp=EF)
    assert facts["load"]["dscp"] == EF
    for way in ("up", "down"):
        by_field = {tuple(map(int, key.split())): count for key, count in sent[way].items()}
        tcp = {field >> 2: count for (kind, field), count in by_field.items() if kind == TCP}
        udp = {field >> 2: count for (kind, field), count in by_field.items() if kind == UDP}
        # Some packets of the control connection and of handshakes have no codepoint.
        assert tcp[EF] > 100
        assert udp == {EF: udp[EF]}
        assert udp[EF] > 30


# ------------------------------------------------------------------------------------- in words


def marks_with(path: list[dict[str, Any]], **more: Any) -> SessionMarks:
    whole = {"answered": True, "dscp": 0, "path": path, "loads": [], "tcp": [], **more}
    return read(SessionMarks, whole)


def arrived(direction: str, ds: int, *came: tuple[int, int]) -> dict[str, Any]:
    counts = [{"ds": field, "count": count} for field, count in came]
    return {"direction": direction, "ds": ds, "sent": 8, "arrived": counts}


def facts_with(made: SessionMarks | None, whole: Session) -> SessionFacts:
    return {**whole.facts, "marks": made}


def test_a_field_that_changes_at_times_is_mixed_and_one_without_answers_unknown(
    whole: Session,
) -> None:
    path = [
        arrived("up", 0, (0, 8)),
        arrived("up", 2, (2, 5), (3, 3)),
        arrived("up", EF << 2, (EF << 2, 8)),
        arrived("down", 0),
        arrived("down", 2),
        arrived("down", EF << 2, (EF << 2, 8)),
    ]
    made = found(facts_with(marks_with(path), whole))
    assert outcomes(made, "up")["ECT(0)"] == "mixed"
    assert outcomes(made, "down")["ECT(0)"] == "unknown"
    assert marks.sentences(made) == [
        "On the way up ECT(0) arrived partly as CE.",
        "On the way down ECT(0) never arrived, and neither did unmarked packets.",
        "DSCP survives both ways: EF arrive as they are sent.",
    ]


def test_phases_that_saw_no_mark_share_a_sentence() -> None:
    def phase(name: str, way: str, **more: int) -> marks.MarkedPhase:
        counts = {"probes_marked": 0, "streams_ecn": 0, "segments": 0, "segments_marked": 0}
        return marks.MarkedPhase(name, way, probes=80, streams=2, **{**counts, **more})

    def said(*loads: marks.MarkedPhase) -> list[str]:
        kept = tuple(
            marks.FieldOutcome("up", field, field != "EF", 8, {field: 8}, "kept")
            for field in ("ECT(0)", "EF")
        )
        return marks.sentences(marks.PathMarks(True, kept, loads))[2:]

    quiet = [phase("download", "down"), phase("both", "up"), phase("both", "down")]
    assert said(*quiet) == [
        "Under download and load both ways no queue was seen to mark: none of 240 ECN-capable probes "
        "arrived with CE, and TCP did not use ECN (sysctl net.ipv4.tcp_ecn=1 at the sender enables it)."
    ]
    apart = said(*quiet, phase("upload", "up", probes_marked=3))
    assert len(apart) == 4
    assert "a queue marks: 3 of 80" in apart[3]


def test_results_of_repeats_are_pooled_and_an_old_server_is_reported(whole: Session) -> None:
    one = facts_with(marks_with([arrived("up", 0, (0, 8)), arrived("up", 2, (2, 8))]), whole)
    other = facts_with(marks_with([arrived("up", 0, (0, 8)), arrived("up", 2, (0, 8))]), whole)
    made = marks.find([one, other])
    assert made is not None
    assert [(fate.sent, fate.fate) for fate in made.path] == [(16, "kept"), (16, "mixed")]
    silent = marks.find([facts_with(marks_with([], answered=False), whole)])
    assert silent is not None
    assert "It is an older version" in marks.sentences(silent)[0]
    # Older measurements have no such key.
    before = {key: value for key, value in whole.facts.items() if key != "marks"}
    assert marks.find([read(SessionFacts, before)]) is None


def test_codepoints_have_names_and_numbers() -> None:
    assert [parse_dscp(text) for text in ("ef", "EF", "46", "cs1", "le")] == [46, 46, 46, 8, 1]
    assert [marks.name(ds) for ds in (0, 2, EF << 2, EF << 2 | 2, 45 << 2, 7 << 2)] == [
        *("Not-ECT", "ECT(0)", "EF", "EF with ECT(0)", "NQB", "DSCP 7"),
    ]
    for wrong in ("64", "gold", "-1"):
        with pytest.raises(UnitError):
            parse_dscp(wrong)
