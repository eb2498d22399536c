"""A user's own queue discipline: its decisions, the code that is refused, and the engines it runs
on."""

from __future__ import annotations

import gc
import itertools
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from own_laws import DRR, HEAD, TIMED, dequeuing

import sojourn
from sojourn import Scenario, _core
from sojourn.agreement import decisions
from sojourn.engine.recording import Recording
from sojourn.engine.registry import find
from sojourn.errors import UserError
from sojourn.own import language
from sojourn.scenario import examples
from sojourn.scenario.qdisc import Qdisc

RECORDINGS = Path(__file__).parent / "recordings"
CODEL = examples.FOLDER / "own_codel.py"
numba = pytest.importorskip("numba", reason="pip install sojourn[own]")

SCENARIO = """
title = "own"
duration = "4 s"
bottleneck = { rate = "10 Mbit/s", delay = "10 ms", qdisc = "own.py:Mine" }
flow = [
    { kind = "bulk", count = 3, ecn = true, stop = "3 s" },
    { kind = "udp", rate = "2 Mbit/s", direction = "up", stop = "3 s" },
    { kind = "ping", stop = "3 s" },
]
"""


def scenario(tmp_path: Path, source: str, qdisc: str) -> Scenario:
    (tmp_path / "own.py").write_text(source)
    (tmp_path / "own.toml").write_text(SCENARIO.replace("own.py:Mine", qdisc))
    return sojourn.load(tmp_path / "own.toml")


def columns(scenario: Scenario, seed: int = 1) -> _core.SeedTables:
    return sojourn.simulate(scenario, seeds=[seed])._tables[seed]


# ---------------------------------------------------------------------------------------- decisions


@pytest.mark.parametrize("name", ["codel-ecn", "codel-noecn", "codel-bql"])
def test_a_user_written_codel_makes_the_decisions_of_ours_and_linux_s(name: str) -> None:
    recording = Recording.load(RECORDINGS / f"{name}.parquet")
    params = recording.link.qdisc.params
    words = f"limit {params['limit']} ecn {int(bool(params['ecn']))}"
    own = Qdisc.parse(f"own_codel.py:CoDel {words}").with_("source", CODEL.read_text())
    ours, theirs = decisions.replayed(recording), decisions.replayed(recording.by(own))
    for column in ("fate", "left_ns", "order", "backlog_packets"):
        np.testing.assert_array_equal(getattr(ours, column), getattr(theirs, column), column)
    assert decisions.compare(recording.by(own)).agrees


def test_a_user_written_codel_is_short() -> None:
    lines = [
        line for line in CODEL.read_text().split("class CoDel")[1].splitlines() if line.strip()
    ]
    assert len(lines) <= 60


SLOW = """
from sojourn.own import Discipline
class Slow(Discipline):
    seen: int = 0
    def enqueue(self, packet, link):
        for turn in range(3_000_000):
            self.seen = self.seen ^ turn
        return 0
"""


def test_a_slow_class_can_be_stopped(tmp_path: Path) -> None:
    loaded = scenario(tmp_path, SLOW, "own.py:Slow")
    reached = []

    def stop(now_ns: int) -> bool:
        reached.append(now_ns)
        return False

    with pytest.raises(_core.Cancelled):
        find("sim").tables(loaded.realise(1), stop)
    # A check after 65 536 events would come only at the end of the run.
    assert reached[0] < 1_000_000_000


@pytest.mark.parametrize(
    ("source", "qdisc"), [(DRR, "own.py:Fair limit 30"), (TIMED, "own.py:Timed")]
)
def test_packets_are_conserved_and_threads_change_nothing(
    tmp_path: Path, source: str, qdisc: str
) -> None:
    loaded = scenario(tmp_path, source, qdisc)
    simulated = sojourn.simulate(loaded, seeds=2, jobs=2)
    for row in simulated.table("links").rows(named=True):
        assert row["arrived_packets"] == row["sent_packets"] + row["dropped_packets"] > 0
    assert simulated.table("links")["dropped_packets"].sum() > 0
    again = sojourn.simulate(loaded, seeds=2, jobs=1)
    for seed in (1, 2):
        one, other = (each.table("queue", seed) for each in (simulated, again))
        assert one.equals(other)


def test_a_scenario_sets_the_numbers_of_a_class(tmp_path: Path) -> None:
    def dropped(words: str) -> int:
        loaded = scenario(tmp_path, DRR, f"own.py:Fair {words}")
        table = sojourn.simulate(loaded).table("links")
        return int(table["dropped_packets"].sum())

    assert dropped("limit 10") > dropped("limit 1000") == 0
    # The class sets its array's length from this setting.
    assert dropped("queues 1 limit 10") > 0


def test_random_numbers_are_uniform_and_of_the_seed(tmp_path: Path) -> None:
    source = HEAD + (
        "class Mine(Discipline):\n"
        "    def enqueue(self, packet: Packet, link: Link) -> int:\n"
        "        return DROP if self.random() < 0.25 else 0\n"
    )
    loaded = scenario(tmp_path, source, "own.py:Mine")
    rows = sojourn.simulate(loaded, seeds=2).table("links").rows(named=True)
    udp = [row for row in rows if row["link"] == "up"]
    shares = [row["dropped_packets"] / row["arrived_packets"] for row in udp]
    assert shares[0] != shares[1]
    for row, share in zip(udp, shares, strict=True):
        assert abs(share - 0.25) < 4 * (0.25 * 0.75 / row["arrived_packets"]) ** 0.5


# ----------------------------------------------------------------------------------------- failures

FAILURES = [
    ("y = 1 << 62; y = y * 2", "a whole number beyond 64 bits"),
    ("self.x = link.now // (self.x - self.x)", "a division by zero"),
    ("self.x = 1 if 1 / (link.now - link.now) > 0 else 2", "a division by zero"),
    ("self.x = link.queue_packets[1]", "an index that its array does not have"),
    ("self.x = link.queue_packets[-1]", "an index that its array does not have"),
    ("self.x = int(1e300 * link.now * 1e300)", "a real number that does not fit a whole number"),
    ("while link.now >= 0: self.x = 0", "loops that had not ended"),
    ("raise ValueError('too late')", "raised: too late"),
    ("assert link.now < 0, 'late'", "raised: late"),
    ("self.x = 1 << (link.now - link.now - 1)", "a shift by less than 0"),
    ("self.x = 1 << (link.now - link.now + 64)", "a shift by less than 0 or more than 63 bits"),
    ("self.two[2 + link.now - link.now] = 1", "an index that its array does not have"),
    ("self.two[link.now - link.now - 1] = 1", "an index that its array does not have"),
    ("self.x = abs(-(1 << 62) - (1 << 62) - link.now * 0)", "a whole number beyond 64 bits"),
    ("self.x = int(math.log(-1.0 - link.now))", "a logarithm of a number that is not above 0"),
    ("self.x = int(math.sqrt(-1 - link.now))", "a square root of a negative number"),
    ("self.x = int((-2.5 - link.now) ** 0.5)", "a negative number raised to a fractional power"),
    ("self.x = int((0.0 * link.now) ** -1)", "a division by zero"),
    ("self.x = int(math.exp(1e3 + link.now))", "a real number beyond 64 bits"),
    ("for i in range(0, 9, link.now - link.now): self.x = i", "a range with a step of 0"),
    ("for i in range(1 - (1 << 62), 1 << 62, 1 << 60): self.x = i", "a range from, to or by"),
    ("for i in range(-(1 << 62), 0, 1 << 60): self.x = i", "a range from, to or by"),
    ("self.x = self.nothing() // (link.now - link.now)", "a division by zero"),
    ("self.x = self.tree()", "loops that had not ended after 10000000 turns and calls"),
]
FIELDS = "case: int = 0\n    x: int = 0\n    two: list[int] = [0] * 2"
METHODS = (
    "\n    def nothing(self) -> int:\n        return 0\n"
    "\n    def tree(self) -> int:\n        for i in range(2000):\n            self.tree4()\n        return 0\n"
    "\n    def tree0(self):\n        self.x = self.x * 5 % 1000003\n"
) + "".join(
    f"\n    def tree{i}(self):\n" + f"        self.tree{i - 1}()\n" * 10 for i in range(1, 5)
)
"""`tree` loops 2000 times, which makes 20 million calls."""


def test_a_failure_in_own_code_gives_an_error_with_its_line(tmp_path: Path) -> None:
    # One class has all cases, so it is compiled once.
    cases = "\n".join(f"if self.case == {i}:\n    {body}" for i, (body, _) in enumerate(FAILURES))
    source = dequeuing(f"{cases}\nreturn PASS", FIELDS) + METHODS
    for i, (body, why) in enumerate(FAILURES):
        line = next(n for n, text in enumerate(source.splitlines(), 1) if text.strip() == body)
        with pytest.raises(UserError) as raised:
            columns(scenario(tmp_path, source, f"own.py:Mine case {i}"))
        problem = raised.value.problem
        if "tree" in body:  # the line is in the call that exceeded the limit
            line = int(problem.split(":")[1])
            assert "def tree" in source.splitlines()[line - 1]
        assert problem.startswith(f"own.py:{line}: Mine.dequeue failed at 0."), problem
        assert why in problem
    columns(scenario(tmp_path, source, "own.py:Mine case 99"))


def test_an_invalid_answer_of_own_code_gives_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"own.py: Mine.dequeue answered 7 at 0\.\d+ s"):
        columns(scenario(tmp_path, dequeuing("return 7"), "own.py:Mine"))
    emptied = DRR.replace("while True:", "while False:").replace(
        "self.turn = (self.turn + 1) % len(self.deficit)", "pass\n        return 0"
    )
    with pytest.raises(UserError, match=r"Fair.choose answered \d"):
        columns(scenario(tmp_path, emptied, "own.py:Fair"))


REFUSED = [
    ("import os\n" + HEAD, "own.py:1: only math and sojourn.own can be imported"),
    (dequeuing("return open('x')"), "there is no function open here"),
    (dequeuing("return self.y"), "own.py:9: Mine has no field y"),
    (dequeuing("return packet.age"), "own.py:9: packet has no age"),
    (dequeuing("packet.bytes = 3\nreturn PASS"), "own.py:9: packet.bytes can't be set"),
    (dequeuing("link.queue_packets[0] = 3\nreturn 0"), "link.queue_packets[0] can't be set"),
    (dequeuing("y = [1]\nreturn 0"), "[1] is not of this language"),
    (dequeuing("with self:\n    pass\nreturn 0"), "With is not of this language"),
    (dequeuing("return self.dequeue(packet, link)"), "dequeue calls itself"),
    (dequeuing("return math.factorial(3)"), "there is no function math.factorial here"),
    (dequeuing("return (lambda: 0)()"), "there is no function"),
    (dequeuing("return 0", "x: str = 'a'"), "not a constant"),
    (dequeuing("return 0", "x: list[int] = [0] * 100000000"), "an array of 100000000 numbers"),
    (dequeuing("return 0", "queues = 4"), "Mine has 4 queues and no method choose"),
    (dequeuing("return 0").replace("(Discipline)", ""), "Mine is neither a discipline"),
    ("def f(:\n", "own.py:1: not Python"),
    ("print('x')\n", "own.py:1: not a constant, a function or a class"),
    (HEAD, "own.py has no class Mine"),
]


@pytest.mark.parametrize(("source", "why"), REFUSED)
def test_code_outside_of_the_language_is_refused_with_its_line(source: str, why: str) -> None:
    with pytest.raises(UserError) as raised:
        language.read(source, "own.py", "Mine", "")
    assert why in raised.value.problem


class _Circle:
    """Its finalizer runs Python code in whichever thread collects it."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        sum(range(50))


def test_threads_may_read_files_at_once() -> None:
    # In Python 3.11, ast.parse failed a few times in a hundred here (gh-106905).
    source = CODEL.read_text()

    def read(_: int) -> str:
        for _ in range(20):
            _Circle()
        return language.read(source, "own_codel.py", "CoDel", "").name

    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(50, 1000, 1000)
    try:
        with ThreadPoolExecutor(4) as threads:
            assert set(threads.map(read, range(100))) == {"CoDel"}
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*thresholds)


def test_a_number_that_the_class_lacks_is_refused_by_name() -> None:
    with pytest.raises(UserError, match="CoDel has no number targt") as raised:
        language.read(CODEL.read_text(), "own_codel.py", "CoDel", "targt 5")
    assert raised.value.hint.startswith("did you mean target?")


def branch(then: str, after: str = "return x") -> str:
    return dequeuing(f"if link.now > 5:\n    {then}\n{after}")


HELPER = "\n    def helper(self, a: int) -> int:\n        return a\n"
UNREAL = "is given a real one"

REFUSED_BY_KIND = [
    # a variable that is not set on some path
    (branch("x = 5"), "own.py:11: x can be unset here"),
    (dequeuing("while link.now > 5:\n    x = 1\nreturn x"), "own.py:11: x can be unset here"),
    (dequeuing("for i in range(link.now):\n    pass\nreturn i"), "own.py:11: i can be unset here"),
    (dequeuing("while True:\n    if link.now > 5:\n        break\n    x = 1\nreturn x"), "own.py:13: x can"),
    (dequeuing("for i in range(3):\n    if i:\n        self.x = y\n    y = i\nreturn 0"), "own.py:11: y can"),
    (dequeuing("x += 1\nreturn 0"), "own.py:9: x can be unset here"),
    # return values
    (dequeuing("x = 1"), "own.py:8: dequeue returns nothing"),
    (branch("return PASS", "self.x = 1"), "own.py:8: dequeue returns a number on some paths"),
    (branch("return", "return PASS"), "own.py:8: dequeue returns a number on some paths"),
    (dequeuing("return 0.7"), "own.py:9: dequeue returns a real number"),
    (dequeuing("return 1, 2"), "own.py:9: (1, 2) is a tuple, not one number"),
    (dequeuing("x, y = self.helper(1)\nreturn x") + HELPER, "is not 2 numbers"),
    (dequeuing("x = self.helper(1)\nreturn x") + HELPER.replace("return a", "pass"), "own.py:9: helper returns no number"),
    # whole and real numbers
    (dequeuing("self.x = 0.5\nreturn PASS"), f"own.py:9: x is a field of whole numbers and {UNREAL}"),
    (branch("self.x = packet.bytes / 2", "return 0"), f"own.py:10: x is a field of whole numbers and {UNREAL}"),
    (dequeuing("x = 1\nfor i in range(3):\n    x = x << 1\n    x = x * 0.5\nreturn 0"), "own.py:11: << needs whole numbers"),
    (dequeuing("return link.queue_packets[0.5]"), "own.py:9: an index needs whole numbers"),
    (dequeuing("return packet.bytes & 1.5"), "own.py:9: & needs whole numbers"),
    (dequeuing("for i in range(2.5):\n    pass\nreturn 0"), "own.py:9: range needs whole numbers"),
    # the arguments of a method
    (dequeuing("link = packet\nreturn 0"), "own.py:9: link is an argument that can't be assigned"),
    (dequeuing("self = 3\nreturn 0"), "own.py:9: self is an argument that can't be assigned"),
    (dequeuing("x = packet\nreturn 0"), "own.py:9: packet is not a number"),
    (dequeuing("return self.helper(packet)") + HELPER, "own.py:9: a of helper is a number, and is given the packet"),
    (dequeuing("return self.helper(1)") + HELPER.replace("a: int", "a: Link").replace("return a", "return 0"), "a of helper is the link, and is given a number"),
    (dequeuing("return 0").replace("packet: Packet, link: Link", "link: Link, packet: Packet"), "own.py:8: link of dequeue is the packet"),
    # arguments and names
    (dequeuing("return bool(1, 2)"), "own.py:9: bool takes 1 argument, not 2"),
    (dequeuing("return max(1)"), "own.py:9: max takes 2 to 16 arguments, not 1"),
    (dequeuing("return round(1.5, 1)"), "own.py:9: round takes 1 argument, not 2"),
    (dequeuing("for i in range():\n    pass\nreturn 0"), "own.py:9: range takes 1 to 3 numbers, not 0"),
    (dequeuing("return 0").replace("link: Link", "packet: Link"), "own.py:8: dequeue has two arguments packet"),
    (dequeuing("break"), "own.py:9: break outside of a loop"),
    (dequeuing("x = y = 0\nreturn 0"), "own.py:9: a line has two assignments"),
    (dequeuing("return self.a", "a: list[int] = [0] * 3"), "own.py:9: a is an array"),
    (dequeuing("return 0", "__why: int = 0"), "own.py:6: __why is a name of Python's own"),
    (dequeuing("return 0") + "\n    def dequeue(self, packet, link):\n        return 1\n", "own.py:11: Mine has a dequeue already"),
    (dequeuing("return 0") + "\n    def __init__(self):\n        self.x = 1\n", "own.py:11: __init__ is never called"),
    ("MS = 5\n" + dequeuing("return 0"), "the file already defines MS"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "why"), REFUSED_BY_KIND)
def test_errors_that_python_finds_at_run_time_are_refused_with_their_line(
    source: str, why: str
) -> None:
    with pytest.raises(UserError) as raised:
        language.read(source, "own.py", "Mine", "")
    assert why in raised.value.problem
    assert "numba" not in str(raised.value)


def methods(count: int, calls: int) -> str:
    """`count` methods, each of which calls the one before `calls` times."""
    body = [
        f"\n    def f{i}(self):\n" + f"        self.f{i - 1}()\n" * calls for i in range(1, count)
    ]
    return dequeuing(f"self.f{count - 1}()\nreturn PASS") + (
        "\n    def f0(self):\n        self.x = self.x * 5 % 1000003\n" + "".join(body)
    )


LARGE = [
    "A0 = 9999999999\n" + "".join(f"A{i} = A{i - 1} * A{i - 1}\n" for i in range(1, 36)) + dequeuing("return 0"),
    "A = 0x" + "F" * 5000 + "\n" + dequeuing("return 0"),
    dequeuing("return 0x" + "F" * 5000),
    dequeuing("return 0", "a: float = 0x" + "F" * 5000),
    dequeuing("return " + "1+" * 600 + "1"),
    "A = " + "1+" * 600 + "1\n" + dequeuing("return 0"),
    dequeuing("return " + "-" * 800 + "1"),
    dequeuing("return " + "not " * 70_000 + "1"),
    dequeuing("return 0", "a: " + "list[" * 100 + "int" + "]" * 100 + " = 0"),
    dequeuing("if link.now == 0:\n    return 0\n" + "".join(f"elif link.now == {i}:\n    return 0\n" for i in range(600)) + "return 0"),
    "".join(f"def f{i}(x):\n    return {f'f{i - 1}(x)' if i else 'x'}\n" for i in range(1200)) + dequeuing("return f1199(1)"),
    dequeuing("return " + "max(" * 9 + "0" + ", 1)" * 9 + "+ max(" + "1, " * 99 + "1)"),
    dequeuing("x = 0\n" + "x = x + 1\n" * 3000 + "return 0"),
    dequeuing("return 0", "".join(f"a{i}: list[int] = [0] * 4194304\n    " for i in range(300))),
    dequeuing("".join("    " * i + f"for i{i} in range(3):\n" for i in range(12)) + "    " * 12 + "pass\nreturn 0"),
    methods(40, 1), methods(40, 2), methods(7, 60), methods(70, 0),
    "#" * 300_000 + "\n" + dequeuing("return 0"),
]  # fmt: skip


@pytest.mark.parametrize("source", LARGE, ids=range(len(LARGE)))
def test_code_that_would_never_end_is_refused_at_once(source: str) -> None:
    before = time.process_time()
    with pytest.raises(UserError) as raised:
        language.read(source, "own.py", "Mine", "")
    assert raised.value.problem.startswith("own.py:")
    assert len(str(raised.value)) < 300
    assert time.process_time() - before < 5


def test_a_congestion_control_s_state_is_small_as_each_connection_has_one() -> None:
    source = (
        "from sojourn.own import CongestionControl\nclass Mine(CongestionControl):\n"
        "    a: list[int] = [0] * 5000\n"
    )
    with pytest.raises(UserError, match=r"own.py:3: an array of 5000 numbers"):
        language.read(source, "own.py", "Mine", "")


NAMES = [
    "turns_",
    "luck_",
    "why_",
    "line_",
    "end1_",
    "dtype",
    "shape",
    "size",
    "own_x",
    "check_add",
    "end_",
    "größe",
    "_x",
    "real",
]


def test_fields_and_variables_may_have_any_name_but_python_s_own(tmp_path: Path) -> None:
    sums = "".join(f"{name} = self.{name} + 1\nself.{name} = {name}\n" for name in NAMES)
    fields = "".join(f"{name}: int = {i}\n    " for i, name in enumerate(NAMES))
    checks = "".join(f"assert self.{name} == {i + 1}\n" for i, name in enumerate(NAMES))
    body = f"if link.now >= 0 and self.first:\n    return 0\nself.first = True\n{sums}{checks}return PASS"
    source = dequeuing(body, f"{fields}first: bool = False")
    assert columns(scenario(tmp_path, source, "own.py:Mine"))


def test_a_function_need_not_end_where_numba_asks_for_an_end(tmp_path: Path) -> None:
    # Both fail at the first packet, with a message of ours.
    called = dequeuing("return self.f()") + "\n    def f(self):\n        raise ValueError('no')\n"
    for source, why in ((dequeuing("while True:\n    pass"), "loops"), (called, "raised: no")):
        with pytest.raises(UserError, match=rf"Mine.dequeue failed at 0\.\d+ s of the run: {why}"):
            columns(scenario(tmp_path, source, "own.py:Mine"))


def test_the_error_of_refused_code_names_its_place_in_the_scenario(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        columns(scenario(tmp_path, DRR, "own.py:Fair queues 100000"))
    said = str(raised.value)
    assert said == "link 'down': qdisc: own.py:5: queues is a whole number, not 100000", said


SUMS = [
    ("a + b", lambda a, b: a + b),
    ("a - b", lambda a, b: a - b),
    ("a * b", lambda a, b: a * b),
    ("a // b", lambda a, b: a // b),
    ("a % b", lambda a, b: a % b),
    ("-a ^ b", lambda a, b: -a ^ b),
    ("a >> (b & 63)", lambda a, b: a >> (b & 63)),
    ("int(a / b)", lambda a, b: int(a / b)),
    ("int((0.0 * a) ** 2)", lambda a, b: 0),
    ("min(a, b) + max(a, 3)", lambda a, b: min(a, b) + max(a, 3)),
]


@pytest.mark.parametrize(
    "numbers",
    [
        [0, -1, 7, (1 << 63) - 1, -(1 << 63)],
        pytest.param([0, 1, -1, 7, -7, 1 << 32, (1 << 63) - 1, -(1 << 63)], marks=pytest.mark.long),
    ],
    ids=["some", "more"],
)
def test_whole_numbers_compute_as_in_python_or_fail(numbers: list[int]) -> None:
    """One class has all operations on all pairs. Its field `case` selects the operation, and `got`
    is the result."""
    cases = "".join(
        f"        if self.case == {i}:\n            self.got = {text}\n"
        for i, (text, _) in enumerate(SUMS)
    )
    source = (
        f"{HEAD}class Mine(Discipline):\n    case: int = 0\n    a: int = 0\n    b: int = 0\n    want: int = 0\n"
        "    got: int = 0\n\n    def dequeue(self, packet: Packet, link: Link) -> int:\n"
        f"        a = self.a\n        b = self.b\n{cases}"
        "        assert self.got == self.want\n        return PASS\n"
    )
    link = Recording.load(RECORDINGS / "pfifo-noecn.parquet").link
    from sojourn.own import compiled

    def outcome(case: int, a: int, b: int, want: int) -> str:
        words = f"own.py:Mine case {case} a {a} b {b} want {want}"
        own = link.with_qdisc(Qdisc.parse(words).with_("source", source))
        one = np.zeros(1, dtype=np.int64)
        try:
            _core.replay(own, 1, one, one, one + 100, one, own=compiled.code_of([own]))
        except _core.OwnCodeError as error:
            return str(compiled.failed(error, [own]))
        return "same"

    for (i, (text, meant)), a, b in itertools.product(enumerate(SUMS), numbers, numbers):
        try:
            want: int | None = meant(a, b)
        except ZeroDivisionError:
            want = None
        fits = want is not None and -(1 << 63) <= want < 1 << 63
        got = outcome(i, a, b, want if fits and want is not None else 0)
        if fits:
            # A real that is not below 2^63 is refused, and so is -(-2^63) as an intermediate
            # result.
            assert got == "same" or "64 bits" in got, (text, a, b, got)
        else:
            assert "64 bits" in got or "division" in got, (text, a, b, got)


# ---------------------------------------------------------------------------------------- engines


def test_a_run_keeps_the_source_and_is_verified_without_the_file(tmp_path: Path) -> None:
    loaded = scenario(tmp_path, DRR, "own.py:Fair")
    run = sojourn.run(loaded, out=tmp_path / "run")
    (tmp_path / "own.py").unlink()
    assert "class Fair" in run.scenario_text
    assert run.meta.conditions["numba"] == numba.__version__
    from sojourn.engine.verify import verify

    found = verify([sojourn.Run.open(tmp_path / "run")])[0]
    assert found.same_build
    assert found.equal


def test_another_text_is_another_fingerprint_and_another_key(tmp_path: Path) -> None:
    from sojourn.engine import seed_source
    from sojourn.engine.registry import find

    def named(source: str) -> tuple[str, str]:
        loaded = scenario(tmp_path, source, "own.py:Fair")
        return loaded.fingerprint(), seed_source.key(find("sim"), loaded.realise(1))

    one, other = named(DRR), named(DRR.replace("1514", "1515"))
    assert one[0] != other[0]
    assert one[1] != other[1]


def test_another_numba_is_another_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sojourn.engine import seed_source
    from sojourn.engine.registry import find
    from sojourn.own import compiled

    realised = scenario(tmp_path, DRR, "own.py:Fair").realise(1)
    before = seed_source.key(find("sim"), realised)
    monkeypatch.setattr(compiled, "_maker", lambda: "own another")
    assert seed_source.key(find("sim"), realised) != before


def test_a_worker_runs_what_it_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sojourn import metrics
    from sojourn.engine import seed_source, worker
    from sojourn.engine.registry import find
    from sojourn.engine.request import meta_of

    loaded = scenario(tmp_path, DRR, "own.py:Fair")
    sim, realised = find("sim"), loaded.realise(1)
    about = metrics.about(meta_of(sim, loaded, [1], realised), _core.CAUSES)
    (tmp_path / "own.py").unlink()
    monkeypatch.setattr(worker, "_wanted", lambda: lambda _: True)
    asked = worker.SeedRequest(loaded.to_toml(), 1, about, seed_source.key(sim, realised))
    (ran,) = worker.work_off("sim", [asked])
    assert isinstance(ran, worker.Ran), ran
    assert ran.packed == seed_source.make(sim, realised, about, lambda _: True).packed


def test_linux_refuses_own_code_with_an_error(tmp_path: Path) -> None:
    loaded = scenario(tmp_path, DRR, "own.py:Fair")
    command = loaded.realise(1).links[0].qdisc.command
    with pytest.raises(UserError, match=r"own\.py:Fair is Python, which no kernel runs"):
        command()


def test_without_numba_the_error_says_what_to_install(tmp_path: Path) -> None:
    scenario(tmp_path, DRR, "own.py:Fair")
    script = (
        "import sys, importlib.metadata\n"
        "sys.modules['numba'] = None\n"
        "found = importlib.metadata.version\n"
        "def version(name):\n"
        "    if name == 'numba': raise importlib.metadata.PackageNotFoundError(name)\n"
        "    return found(name)\n"
        "importlib.metadata.version = version\n"
        "import sojourn\n"
        f"sojourn.simulate({str(tmp_path / 'own.toml')!r})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (
        "UserError: link 'down': qdisc: your own code is compiled by numba, which is not installed"
        in done.stderr
    )


@pytest.mark.long
def test_the_command_line_accepts_own_code_wherever_it_accepts_a_discipline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sojourn.cli import status

    scenario(tmp_path, DRR, "pfifo")
    monkeypatch.chdir(tmp_path)
    for words in (
        ["run", "own.toml", "--qdisc", "own.py:Fair", "-q", "-o", "run"],
        ["compare", "own.toml", "fq_codel", "own.py:Fair limit 50", "-q", "-o", "compared"],
        ["replay", str(RECORDINGS / "codel-noecn.parquet"), "--qdisc", f"{CODEL}:CoDel"],
    ):
        assert status(words) == 0, words
