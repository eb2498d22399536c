"""Compares sojourn's parser with tc(8) itself, option by option. Both accept the same options,
except for the listed ones.

The parser of tc reads all options of a command before it looks up the device. So with a missing
device its error shows whether it accepted the options, without root and without the kernel's
modules. The lists are those of iproute2 6.1; differences of a newer one are not faults.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence

import pytest
from tree import ROOT

from sojourn.errors import UserError
from sojourn.linux import tc
from sojourn.scenario import loads
from sojourn.scenario.qdisc import QDISCS, Police, Qdisc, Shaper
from sojourn.units import UnitError

TC = shutil.which("tc", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))
pytestmark = pytest.mark.skipif(TC is None, reason="there is no tc here: apt-get install iproute2")

NOBODY = "nosuchdevice"
READ = f'Cannot find device "{NOBODY}"'
SENT = "We have an error talking to the kernel"
"""tc parses a filter's action after it has found the device. So the command needs an existing
device; the filter's qdisc may be missing."""
POLICING = "filter replace dev lo parent 7ffe: matchall action"
ORACLE = (6, 1)
"""The version of iproute2 for the lists."""

OTHER_LINES = {
    "pfifo_fast": "tc has no options for it; its limit is the device's",
    "drr": "tc makes its classes and filters by separate commands",
    "gred": "tc makes its virtual queues and filters by separate commands",
    "mq": "tc sets the discipline of each queue by a separate command",
    "dualpi2": "iproute2 6.1 does not have it",
    "cake_mq": "iproute2 6.1 does not have it",
}
"""Disciplines whose line differs from tc's."""
YOUNGER = {"fq bands", "fq priomap", "fq weights"}
"""Options that iproute2 6.1 does not have."""
REFUSED = {
    "cake autorate-ingress": "autorate-ingress",
    "cake fwmark": "fwmark 0xff",
    "red qevent": "qevent early_drop block 10",
    "prio multiqueue": "multiqueue",
}
"""tc's options that are refused, and their form in tc. docs/qdiscs.md has the reasons."""
UNNAMED = (
    *("cake diffserv", "cake via-ethernet ethernet", "tbf rate 1mbit buffer 5k limit 60k"),
    *("tbf rate 1mbit maxburst 5k lat 50ms", "tbf rate 1mbit b 5k l 60k o 4 linkl atm"),
    "tbf rate 1mbit bu 5k la 50ms p 2mbit minburst 2k",
)
"""Options that tc accepts but does not list in its usage."""


def asked(lines: Sequence[str], command: str = "qdisc replace dev {} root") -> list[str]:
    """Returns tc's answer to each line. An answer's last line is READ if tc accepted the line."""
    said: list[str] = []
    while len(said) < len(lines):
        rest = lines[len(said) :]
        text = "".join(f"{command.format(NOBODY)} {line}\n" for line in rest)
        found = subprocess.run(
            [str(TC), "-force", "-batch", "-"], input=text, capture_output=True, text=True
        )
        *answered, last = re.split(r"Command failed -:\d+\n", found.stderr)
        said += answered
        # At some options tc exits at once.
        if len(answered) < len(rest):
            said.append(last)
    return [one.strip() for one in said]


def read(said: str) -> bool:
    return said.endswith((READ, SENT))


def disagreements(
    lines: Sequence[str],
    command: str = "qdisc replace dev {} root",
    parse: Callable[[str], object] = Qdisc.parse,
) -> Iterator[tuple[str, bool, str]]:
    """Yields each line that only one of the two accepts, whether tc accepts it, and the error of
    the other."""
    for line, said in zip(lines, asked(lines, command), strict=True):
        try:
            parse(line)
            ours = ""
        except UserError as error:
            ours = str(error)
        if read(said) == bool(ours):
            yield line, read(said), ours or said.partition("\n")[0]


def version() -> tuple[int, int]:
    said = subprocess.run([str(TC), "-V"], capture_output=True, text=True).stdout
    found = re.search(r"iproute2-(?:ss)?(\d+)(?:\.(\d+))?", said)
    return (int(found[1]), int(found[2] or 0)) if found else ORACLE


LEAST = {
    "red": "red limit 400000 avpkt 1000",
    "choke": "choke limit 1000 bandwidth 10mbit",
    "ets": "ets bands 3",
    "tbf": "tbf rate 1mbit burst 5k limit 60k",
}
"""The shortest options with which tc accepts a discipline."""
BESIDE = {
    "tbf mtu": "peakrate 20mbit",
    "tbf peakrate": "mtu 1600",
    **{
        f"sfq {word}": "redflowlimit 400000"
        for word in ("min", "max", "avpkt", "burst", "probability", "ecn", "harddrop")
    },
}
"""Options that an option requires."""
USUAL = {
    "PACKETS": "100",
    "BYTES": "3000",
    "TIME": "20ms",
    "RATE": "10mbit",
    "NUMBER": "2",
    "QUEUES": "64",
    "MS": "100",
    "SECONDS": "10",
    "VALUE/MASK": "0x1/0x3",
    "ethernet|atm": "atm",
    "BYTES...": "1500 3000",
    "BAND...": "0 1",
}
"""A value for each kind of value."""
FITTING = {
    "red limit": "400000",
    "red avpkt": "1000",
    "red min": "30000",
    "red max": "90000",
    "red burst": "55",
    "red probability": "0.02",
    "choke limit": "1000",
    "choke avpkt": "1000",
    "choke min": "100",
    "choke max": "300",
    "choke burst": "100",
    "choke probability": "0.02",
    "fq buckets": "1024",
    "ets strict": "1",
    "cake overhead": "44",
    "cake mpu": "64",
    "prio bands": "4",
    "sfb increment": "0.001",
    "sfb decrement": "0.0001",
    "sfq divisor": "1024",
    "sfq redflowlimit": "400000",
    "tbf peakrate": "20mbit",
    "sfq burst": "60",
    "sfq probability": "0.02",
    "sfq min": "8000",
    "sfq max": "60000",
    "sfq avpkt": "1000",
}
"""The values for options that the usual value doesn't fit."""


def kinds() -> list[str]:
    return [
        kind for kind, record in QDISCS.items() if record.in_linux() and kind not in OTHER_LINES
    ]


def line(kind: str, *said: str) -> str:
    """The shortest line with these options."""
    words = {each.split()[0] for each in said}
    beside = [
        BESIDE[f"{kind} {word}"]
        for word in sorted(words)
        if f"{kind} {word}" in BESIDE and BESIDE[f"{kind} {word}"].split()[0] not in words
    ]
    needed = LEAST.get(kind, kind).split()
    without = words | ({"limit"} if "latency" in words else set())
    pairs = zip(needed[1::2], needed[2::2], strict=True)
    kept = [f"{word} {value}" for word, value in pairs if word not in without]
    return " ".join([kind, *kept, *dict.fromkeys(beside), *said])


def usual(kind: str) -> list[str]:
    """Each of our options that iproute2 6.1 has, with a value."""
    return [
        f"{word} {FITTING.get(f'{kind} {word}', USUAL[shows])}" if shows else word
        for word, shows in QDISCS[kind].words()
        if f"{kind} {word}" not in YOUNGER
    ]


def test_each_of_our_words_is_one_of_tc_s() -> None:
    lines = [line(kind, said) for kind in kinds() for said in usual(kind)]
    assert all(map(read, asked(lines)))
    assert list(disagreements(lines)) == []
    # tc also accepts the kernel engine's line.
    commands = [Qdisc.parse(line).command() for line in lines]
    unread = [
        (command, said)
        for command, said in zip(commands, asked(commands), strict=True)
        if not read(said)
    ]
    assert unread == []
    if version() == ORACLE:
        assert not any(map(read, asked([f"{younger} 1 2 3" for younger in sorted(YOUNGER)])))
        assert all("Unknown qdisc" in said for said in asked(["dualpi2 limit 9", "cake_mq raw"]))


def test_each_word_of_tc_s_usage_is_one_of_ours_or_listed() -> None:
    """The words of `tc ... help` that are not options are left out: kinds, alternatives, prose."""
    usages = dict(zip(kinds(), asked([f"{kind} help" for kind in kinds()]), strict=True))
    found: dict[str, set[str]] = {}
    for kind, usage in usages.items():
        said = re.sub(r"\[(no_?)\](\w+)", r"\2 | \1\2", usage)
        said = re.sub(r"horizon_\{cap\|drop\}", "horizon_cap | horizon_drop", said)
        said = re.sub(r"\(.*?\)|<.*?>|\.\.\. \w+|What is.*|block|early_drop|\bmark\b", " ", said)
        found[kind] = set(re.findall(r"(?<![\w-])[a-z][a-z0-9_-]+", said))
    assert {kind for kind in found if not found[kind]} == set()
    ours = {kind: {word for word, _ in QDISCS[kind].words()} for kind in kinds()}
    idle = {"nat", "nonat"}
    unknown = {
        f"{kind} {word}"
        for kind, words in found.items()
        for word in words - ours[kind] - (idle if kind == "cake" else set())
    }
    if version() == ORACLE:
        assert unknown == set(REFUSED)
    lines = [line(name.split()[0], said) for name, said in REFUSED.items()]
    assert [by_tc for _, by_tc, _ in disagreements(lines)] == [True] * len(REFUSED)


def test_synonyms_that_tc_does_not_list_are_read() -> None:
    assert list(disagreements(UNNAMED)) == []


LINES = (
    "cake bandwidth 18Mbit besteffort pppoe-ptm ether-vlan",
    "cake bandwidth 18Mbit bridged-ptm ether-vlan",
    "cake bandwidth 18Mbit ethernet ether-vlan ether-vlan",
    "cake bandwidth 900kbit atm overhead -4",
    "cake bandwidth 10Mbit diffserv3 triple-isolate split-gso rtt 10ms raw overhead 0",
    "cake bandwidth 13mbit besteffort nat docsis ack-filter",
    "cake bandwidth 2gbit diffserv4 dual-srchost nat nowash no-ack-filter split-gso rtt 25ms noatm"
    " overhead 54 mpu 88",
    "cake bandwidth 20Mbit besteffort nonat",
    "tbf rate 10Mbit burst 32Kb lat 50ms",
)
"""Lines from public scripts."""


def test_lines_of_public_scripts_are_read() -> None:
    assert [Qdisc.parse(line).kind for line in LINES] == ["cake"] * 8 + ["tbf"]
    assert all(map(read, asked(LINES)))
    # tc prints this form, but neither tc nor sojourn accepts it.
    shown = "cake bandwidth unlimited besteffort"
    assert not read(asked([shown])[0])
    with pytest.raises(UnitError) as refused:
        Qdisc.parse(shown)
    assert refused.value.hint.startswith(
        "unlimited is a keyword, not a value: write unlimited alone"
    )


def test_a_shaper_s_words_are_those_of_an_htb_class() -> None:
    words = ("ceil 1000kbit", "burst 3k", "burst 3k cburst 3k", "overhead 4", "mpu 64")
    others = ("linklayer atm", "buffer 3k cbuffer 3k", "maxburst 3k cmaxburst 3k")
    lines = [f"htb rate 1mbit {said}" for said in (*words, *others)]
    assert all(Shaper.parse(line) for line in lines)
    assert all(map(read, asked(lines, "class replace dev {} parent 1: classid 1:1")))


def policed(line: str) -> Police:
    """Parses the policer of a link from this text."""
    text = f"""
    duration = "1 s"
    [[link]]
    name = "line"
    from = "a"
    to = "b"
    rate = "10 Mbit/s"
    delay = "1 ms"
    link_layer = "linux"
    police = "{line}"
    [[flow]]
    kind = "ping"
    from = "a"
    to = "b"
    """
    police = loads(text).realise(1).links[0].police
    assert police is not None
    return police


POLICER = {"rate": "1mbit", "burst": "5k"}
"""Required options of a policer."""
POLICER_WORDS = {
    "rate": "2mbit",
    **dict.fromkeys(("burst", "buffer", "maxburst"), "64k"),
    **dict.fromkeys(("mtu", "minburst"), "1600"),
    "overhead": "24",
    "conform-exceed": "drop",
    "drop": "",
}
"""Each of our options, with a value."""
POLICER_REFUSED = {
    "peakrate": "2mbit mtu 1600",
    "mpu": "64",
    "linklayer": "atm",
    "index": "7",
    **dict.fromkeys(("continue", "pass", "ok", "pipe", "reclassify", "shot"), ""),
}
"""Refused options of tc's, with a value."""
OTHER_POLICERS = {
    "pkts_rate": "police pkts_rate 100 pkts_burst 10",
    "avrate": "police avrate 2mbit",
}
"""Options of tc's for features that are refused entirely."""


def policer(*pairs: tuple[str, str]) -> str:
    """The shortest line with these options and their values."""
    given = {{"buffer": "burst", "maxburst": "burst"}.get(word, word) for word, _ in pairs}
    needed = [pair for pair in POLICER.items() if pair[0] not in given]
    return f"police {' '.join(f'{word} {value}'.strip() for word, value in [*needed, *pairs])}"


def test_a_policer_s_words_are_those_of_tc_s_action() -> None:
    lines = [policer(pair) for pair in POLICER_WORDS.items()]
    said = asked(lines, POLICING)
    assert all(map(read, said)), said
    # tc also accepts the kernel engine's line.
    commands = [tc.policer("lo", policed(line), header_bytes=14)[1] for line in lines]
    assert all(" egress matchall action " in each for each in commands)
    actions = [each.partition(" action ")[2] for each in commands]
    assert all(map(read, asked(actions, POLICING)))

    refused = [*(policer(pair) for pair in POLICER_REFUSED.items()), OTHER_POLICERS["pkts_rate"]]
    found = list(disagreements(refused, POLICING, policed))
    assert [line for line, by_tc, _ in found if by_tc] == refused
    with pytest.raises(UserError, match="avrate is not supported"):
        policed(OTHER_POLICERS["avrate"])
    usage = re.sub(r"Where:.*|<.*?>", " ", asked(["police help"], POLICING)[0], flags=re.DOTALL)
    words = set(re.findall(r"(?<![\w/-])[a-z][a-z0-9_-]+", usage)) - {"police"}
    assert words - {*POLICER_WORDS, *POLICER_REFUSED, *OTHER_POLICERS, "pkts_burst"} == set()
    assert len(words) > 5


POLICER_ALONE = {
    True: {
        r"(rate|burst|buffer|maxburst|mtu|minburst|overhead) (0x10|010|0\.5)": "C's forms of a number",
        r"(mtu|minburst) 0": "every packet is larger",
        r"rate 100": "its burst takes more time than tc counts in 32 bits",
        r"overhead 3000": "larger than any header",
        r"(burst|buffer|maxburst|mtu|minburst) 10k/8": "sets the cell size of Linux's rate table",
        r"conform-exceed (-?\d+|1/3)": "an action by its number",
    },
    False: {r"overhead 0x10": "hexadecimal, but tc reads only decimal digits"},
}
"""As `ALONE`: option and value."""


def test_a_policer_s_values_are_read_as_tc_reads_them() -> None:
    lines = {
        policer((word, value)): f"{word} {value}"
        for word, usual in POLICER_WORDS.items()
        for value in ((*VALUES, "10k/8") if usual else ())
    }
    needed, unlisted = set(), []
    for one, by_tc, said in disagreements(list(lines), POLICING, policed):
        reason = next(
            (each for each in POLICER_ALONE[by_tc] if re.fullmatch(each, lines[one])), None
        )
        needed.add((by_tc, reason))
        if reason is None:
            unlisted.append((lines[one], "tc alone" if by_tc else "sojourn alone", said))
    assert unlisted == []
    if version() == ORACLE:
        rules = {(by_tc, rule) for by_tc, rules in POLICER_ALONE.items() for rule in rules}
        assert needed == rules


def test_a_policer_s_words_can_be_combined_as_in_tc() -> None:
    lines = [policer(*pair) for pair in itertools.permutations(POLICER_WORDS.items(), 2)]
    found = [
        (one, "tc alone" if by_tc else "sojourn alone", said)
        for one, by_tc, said in disagreements(lines, POLICING, policed)
        if not (by_tc and "is given twice" in said)
    ]
    assert found == []


def test_every_refused_word_is_documented() -> None:
    page = (ROOT / "docs" / "qdiscs.md").read_text(encoding="utf-8")
    _, _, table = page.partition("## Words of tc that are refused")
    assert [name for name in REFUSED if f"`{name.split()[1]}`" not in table] == []


VALUES = (
    *("1", "2", "100", "3000", "100p", "2pkt", "1500b", "10k", "1.5kb", "0", "0.5", "0x10", "010"),
    *("-4", "20ms", "20us", "20ns", "1.5s", "10mbit", "10Mbit", "20Mbps", "1.5gibit", "1tbit"),
    *("50%", "1/3", "atm", "adsl", "ethernet", "foo"),
)
ALONE = {
    True: {
        r".* (0x10|010|-4|0\.5)": "C's forms of a number: with a sign or a base, or truncated",
        r".* 0": "0 means none, which needs no option; or Linux refuses it, or uses another value",
        r"(red|choke|sfq) probability .*": "not a probability, and tc does not check",
        r"(fq_codel|fq_pie|sfq) quantum (1|2|100)": "Linux takes 256 instead, or refuses it",
        r"fq_pie quantum 10[mM]bit": "Linux refuses it: 1 MiB is the most",
        r"fq buckets 1": "Linux refuses it",
        r"fq timer_slack 20ns": "we count it in microseconds",
        r"prio bands (1|2|100|3000)": "Linux refuses it: 2 to 16, and a band of the priomap",
        r"red (min|max) 10[mM]bit": "more than the limit",
        r"sfb (in|de)crement (1tbit|1/3)": "tc reads the digits and ignores the rest",
        r"sfq divisor (100|3000)": "Linux refuses it: not a power of two",
        r"tbf mpu 10[mM]bit": "more than the 16 bits that Linux stores",
        r"tbf peakrate \d+": "Linux refuses it: not above the rate",
    },
    False: {
        r".* 100p": "a number of packets as tc prints it",
        r".* 0x10": "hexadecimal, but tc reads only decimal digits",
        r".* 1tbit": "beyond the 32 bits of bytes a second that tc reads here",
        r"(fq_)?codel (target|interval|ce_threshold) 20ns": "the simulator's clock is finer",
        r"choke (limit|min|max|burst|avpkt) .*": "tc finds no weight for the average",
        r"(choke bandwidth|tbf rate) [12]": "not a byte a second",
        r"hhf admit_bytes \S+": "a size, where tc reads bytes alone",
    },
}
"""Values that only tc accepts (True), or only sojourn (False): discipline, option and value, with
the reason."""


def test_values_are_read_as_tc_reads_them() -> None:
    lines = {
        line(kind, f"{word} {value}"): f"{kind} {word} {value}"
        for kind in kinds()
        for word, shows in QDISCS[kind].words()
        for value in (VALUES if shows else ())
        if f"{kind} {word}" not in YOUNGER
    }
    needed, unlisted = set(), []
    for one, by_tc, said in disagreements(list(lines)):
        name = lines[one]
        reason = next((each for each in ALONE[by_tc] if re.fullmatch(each, name)), None)
        needed.add((by_tc, reason))
        if reason is None:
            unlisted.append((name, "tc alone" if by_tc else "sojourn alone", said))
    assert unlisted == []
    if version() == ORACLE:
        assert needed == {(by_tc, reason) for by_tc, rules in ALONE.items() for reason in rules}


TWICE = re.compile(r".* sets a parameter again|cake: \S+ and \S+ exclude each other")
"""If an option appears twice, tc uses the latter; sojourn refuses the line."""


def test_words_can_be_combined_as_in_tc() -> None:
    pairs = [line(kind, *two) for kind in kinds() for two in itertools.permutations(usual(kind), 2)]
    found = [
        (one, "tc alone" if by_tc else "sojourn alone", said)
        for one, by_tc, said in disagreements(pairs)
        if not (by_tc and TWICE.fullmatch(said))
    ]
    assert found == []
