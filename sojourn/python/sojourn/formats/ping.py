"""ping: the text of iputils (Linux), busybox, macOS, FreeBSD and Windows; BSD's ping6.

A gap in `icmp_seq` is a lost probe. So are the probes that the summary counts beyond the last reply.
With `-D` each reply has a time of day. Without it the interval between probes follows from the
summary of iputils.
"""

from __future__ import annotations

import math
import re

from sojourn.formats.content import Content
from sojourn.formats.file_series import Pings
from sojourn.formats.format import FileFormatError, Format, Yields
from sojourn.formats.measured import FileMeasurement

_HEAD = re.compile(
    r"^(?:PING |PING6\(.*?\) \S+ --> )(?P<host>[^\s(]+)|^Pinging (?P<windows>\S+)", re.M
)
_REPLY = re.compile(
    r"^(?:\[(?P<stamp>\d+\.\d+)\] )?\d+ bytes from (?P<from>[^ ]+(?: \([^)]*\))?)[:,] (?:icmp_)?seq=(?P<seq>\d+) .*?time=(?P<ms>[\d.]+) ms(?P<rest>.*)$"
)
_WINDOWS = re.compile(r"^Reply from (\S+): .*time(?P<sign>[=<])(?P<ms>\d+)ms")
_WINDOWS_LOST = re.compile(r"^(Request timed out\.|Reply from .*unreachable)")
_UNREACHABLE = re.compile(r"^(?:\[\d+\.\d+\] )?From .* icmp_seq=\d+ ")
_SENT = re.compile(
    r"^(\d+) packets transmitted, (\d+) (?:packets )?received.*?(?:time (\d+)ms)?$", re.M
)
_WINDOWS_SENT = re.compile(r"Packets: Sent = (\d+), Received = (\d+)")
SEQUENCES = 2**16
"""ICMP's sequence numbers begin again at 0 after this many."""


def _is_text(content: Content) -> bool:
    return _HEAD.search(content.head) is not None and (
        " bytes of data" in content.head
        or " data bytes" in content.head
        or "bytes of data:" in content.head
        or "PING6(" in content.head
    )


def _read_text(content: Content) -> FileMeasurement:
    heads = [*_HEAD.finditer(content.text)]
    if len(heads) > 1:
        raise FileFormatError(
            f"it has the output of {len(heads)} pings: give each a file of its own"
        )
    if windows := heads[0]["windows"]:
        return _read_windows(content, windows)
    host = heads[0]["host"]
    replies: dict[int, tuple[float | None, float]] = {}
    duplicates = unreachable = 0
    highest: int | None = None
    for line in content.lines:
        found = _REPLY.match(line)
        if not found:
            unreachable += _UNREACHABLE.match(line) is not None
            continue
        number = int(found["seq"])
        if highest is not None:
            # Of all numbers that are `number` modulo 2^16, the one closest to the highest so far.
            number += round((highest - number) / SEQUENCES) * SEQUENCES
        highest = number if highest is None else max(highest, number)
        if "DUP!" in found["rest"] or number in replies:
            duplicates += 1
            continue
        replies[number] = (float(found["stamp"]) if found["stamp"] else None, float(found["ms"]))
    summary = _SENT.search(content.text)
    if not replies and not summary:
        raise FileFormatError("it has neither a reply nor a summary")
    first = 0 if 0 in replies else 1
    count = int(summary[1]) if summary else max(replies) - first + 1
    numbers = range(first, first + max(count, max(replies, default=first) - first + 1))
    notes = []
    if duplicates:
        notes.append(f"{duplicates} duplicate replies are left out.")
    if unreachable:
        notes.append(f"{unreachable} probes were answered as unreachable: they count as lost.")
    if summary and int(summary[2]) > len(replies):
        notes.append(
            f"The summary counts {summary[2]} replies, and {len(replies)} are listed: the others count as lost."
        )
    if not summary:
        notes.append("The summary is missing: probes lost after the last reply are not known.")
    stamped = {seq: at - ms / 1e3 for seq, (at, ms) in replies.items() if at is not None}
    if len(stamped) == len(replies) and stamped:
        times, began = _interpolated(numbers, stamped)
    else:
        apart, note = _apart(summary)
        notes.append(note)
        times, began = {seq: (seq - first) * apart for seq in numbers}, None
    pings = Pings(f"{host} ICMP")
    for seq in numbers:
        reply = replies.get(seq)
        pings.add(times[seq], seq, None if reply is None else reply[1])
    return FileMeasurement(
        "ping", "", f"{len(numbers)} probes", host, began, pings=[pings], notes=notes
    )


def _apart(summary: re.Match[str] | None) -> tuple[float, str]:
    """Returns the seconds between probes, and a note on their origin."""
    if summary and summary[3] and int(summary[1]) > 1:
        apart = int(summary[3]) / 1e3 / (int(summary[1]) - 1)
        return (
            apart,
            f"Without -D replies have no times: probes are placed {apart * 1e3:.4g} ms apart, from the summary's total time.",
        )
    return (
        1.0,
        "Replies have no times: probes are placed 1 s apart, as ping sends them unless it is given an interval.",
    )


def _interpolated(numbers: range, sent: dict[int, float]) -> tuple[dict[int, float], float]:
    """Returns the time at which each probe was sent, in s after the first, and the first one's time
    of day. The time of a lost probe is interpolated between its neighbours."""
    known = sorted(sent)
    apart = (sent[known[-1]] - sent[known[0]]) / (known[-1] - known[0]) if len(known) > 1 else 1.0
    times: dict[int, float] = {}
    before = 0
    for seq in numbers:
        while before + 1 < len(known) and known[before + 1] <= seq:
            before += 1
        a = known[before]
        if seq == a:
            times[seq] = sent[a]
        elif seq > a and before + 1 < len(known):
            b = known[before + 1]
            times[seq] = sent[a] + (sent[b] - sent[a]) * (seq - a) / (b - a)
        else:
            times[seq] = sent[a] + (seq - a) * apart
    began = times[numbers[0]]
    return {seq: at - began for seq, at in times.items()}, began


def _read_windows(content: Content, host: str) -> FileMeasurement:
    pings = Pings(f"{host} ICMP")
    below = 0
    for line in content.lines:
        reply = _WINDOWS.match(line)
        if reply:
            # "time<1ms": the RTT was between 0 and 1 ms.
            below += reply["sign"] == "<"
            pings.add(
                len(pings.sent),
                len(pings.sent),
                0.5 if reply["sign"] == "<" else float(reply["ms"]),
            )
        elif _WINDOWS_LOST.match(line):
            pings.add(len(pings.sent), len(pings.sent), None)
    summary = _WINDOWS_SENT.search(content.text)
    if summary and int(summary[1]) != len(pings.sent):
        raise FileFormatError(f"it has {len(pings.sent)} probes of {summary[1]}")
    notes = [
        "Replies have no times: probes are placed 1 s apart, as Windows sends them. RTTs are whole milliseconds."
    ]
    if below:
        notes.append(f"{below} RTTs below 1 ms count as 0.5 ms.")
    return FileMeasurement(
        "ping", "", f"{len(pings.sent)} probes", host, None, pings=[pings], notes=notes
    )


# ------------------------------------------------------------------------------------------ fping

_EACH = re.compile(
    r"^(?:\[(?P<stamp>\d+\.\d+)\] )?(?P<host>\S+) +: \[(?P<seq>\d+)\], (?:(?P<size>\d+) bytes, (?P<ms>[\d.]+) ms|(?P<lost>timed out))"
)
_ROW = re.compile(r"^(?P<host>\S+) +: (?P<values>(?:(?:\d+(?:\.\d+)?|-)(?: |$)){2,})\s*$")
FPING_MS = 1000.0
"""fping's default of -p: the time between probes."""


def _is_fping(content: Content) -> bool:
    return any(_EACH.match(line) or _ROW.match(line) for line in content.head.splitlines()[:50])


def _read_fping(content: Content) -> FileMeasurement:
    """Lines of -l and -c, with or without -D, or the rows of -C."""
    targets: dict[str, dict[int, tuple[float | None, float | None]]] = {}
    for line in content.lines:
        each, row = _EACH.match(line), _ROW.match(line)
        if each:
            stamp, ms = each["stamp"], each["ms"]
            lost = each["lost"] is not None
            sent = None if stamp is None else float(stamp) - (0 if lost else float(ms) / 1e3)
            targets.setdefault(each["host"], {})[int(each["seq"])] = (
                sent,
                None if lost else float(ms),
            )
        elif row:
            values = row["values"].split()
            targets[row["host"]] = {
                seq: (None, None if value == "-" else float(value))
                for seq, value in enumerate(values)
            }
    stamps = [sent for probes in targets.values() for sent, _ in probes.values()]
    stamped = all(sent is not None for sent in stamps)
    began = min((sent for sent in stamps if sent is not None), default=0.0) if stamped else None
    notes = []
    if not stamped:
        notes.append("Without -D probes have no times: they are placed 1 s apart, as fping sends them unless -p is given.")  # fmt: skip
    elif any(ms is None for probes in targets.values() for _, ms in probes.values()):
        notes.append("The time of a lost probe is the time at which fping gave up on it.")
    pings = []
    for host, probes in targets.items():
        target = Pings(f"{host} ICMP")
        known = sorted(probes)
        for seq in range(known[-1] + 1):
            sent, ms = probes.get(seq, (None, None))
            at = seq * FPING_MS / 1e3 if began is None else _near(probes, seq, sent) - began
            target.add(max(at, 0.0), seq, ms)
        pings.append(target)
    hosts = ", ".join(targets)
    return FileMeasurement("fping", "", f"{len(pings)} targets" if len(pings) > 1 else f"{len(pings[0].sent)} probes", hosts if len(pings) == 1 else "", began, pings=pings, notes=notes)  # fmt: skip


def _near(
    probes: dict[int, tuple[float | None, float | None]], seq: int, sent: float | None
) -> float:
    """Returns the time at which a probe was sent. A probe without a line has its nearest
    neighbour's."""
    if sent is not None:
        return sent
    nearest = min(probes, key=lambda other: abs(other - seq))
    at = probes[nearest][0]
    return math.nan if at is None else at


# ------------------------------------------------------------------------------------- traceroute

_TRACED = re.compile(
    r"^(?:traceroute6? to \S+|Tracing route to \S+)|^ *1 +\S+ \(\S+\)  [\d.]+ ms", re.M
)


def _is_traceroute(content: Content) -> bool:
    return _TRACED.search(content.head) is not None


def _read_traceroute(_content: Content) -> FileMeasurement:
    raise FileFormatError(
        "traceroute sends three probes to each hop, one after the other, so it shows nothing over time; `mtr --raw -c 60 HOST > FILE` writes the RTT of each probe"
    )


FORMATS = (
    Format("traceroute", "traceroute", "traceroute HOST > FILE", Yields.MEASUREMENT, _is_traceroute, _read_traceroute, refused=True),
    Format("ping-text", "ping", "ping -D HOST > FILE", Yields.MEASUREMENT, _is_text, _read_text),
    Format("fping-text", "fping", "fping -D -l HOST > FILE", Yields.MEASUREMENT, _is_fping, _read_fping),
)  # fmt: skip
