"""Hostile scenarios: for any file, `sojourn run` exits with 0 or refuses it, and its memory stays
small.

    python benches/fuzz.py                      # 3000 files, some ten minutes on two cores
    python benches/fuzz.py --cases 200 --first 5000
    python benches/fuzz.py --show 1975          # the file of one case
    python benches/fuzz.py --file mine.toml     # your own file under the same rules, with the
                                                # classes of *.py beside it

The number of a case is its seed. Four kinds take turns: sentences of the language with usual
values; the same with extreme and wrong values; an example with keys and values exchanged; an
example with bytes changed.

Each case is run as `sojourn run FILE --json` in its own process. The case fails if the process
  - exits with a status other than 0, 2 or 130 (the CPU limit acts as Ctrl-C does), or dies by a
    signal;
  - exits with 0 and prints anything but one JSON object without NaN, or prints anything but notes
    on stderr;
  - exits with 2 without a line that begins with `error:`, or prints a traceback;
  - uses half of its CPU limit while no simulated time passes, or does not end;
  - takes more than 1 GB.
The exit status is 1 if any case failed. --keep DIR keeps the files of failed cases.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parent.parent / "scenarios"
MOST_BYTES = 10**9
"""Resident memory of one case."""
ADDRESS_SPACE = 6 * 10**9
"""Address space of one case. Beyond it an allocation fails, which protects the machine."""
WALL_PER_CPU = 30
"""A case that has not ended after this many CPU limits of clock time hangs without using CPU."""

# ------------------------------------------------------------------------------------ the language

Make = Callable[[random.Random], str]
"""Draws a value's text."""


def one_of(*values: str) -> Make:
    return lambda rng: rng.choice(values)


def number(low: float, high: float, unit: str = "") -> Make:
    """Log-uniform between `low` and `high`, quoted if it has a unit."""

    def make(rng: random.Random) -> str:
        value = low * (high / low) ** rng.random() if low > 0 else rng.uniform(low, high)
        text = f"{max(round(value), 1) if rng.random() < 0.5 and value > 1 else float(f'{value:.2g}'):g}"
        return f'"{text} {unit}"' if unit else text

    return make


def either(*makes: Make) -> Make:
    return lambda rng: rng.choice(makes)(rng)


def law(draw: Callable[[random.Random], tuple[str, str]]) -> Make:
    """A quantity that each flow draws: a fixed value, or a distribution between two values."""

    def make(rng: random.Random) -> str:
        low, high = draw(rng)
        words = rng.choice(["{low}", "uniform {low} .. {high}", "spread {low} .. {high}"])
        return f'"{words.format(low=low, high=high)}"'

    return make


def again(*units: str) -> Make:
    """A quantity that is drawn anew each time."""

    def make(rng: random.Random) -> str:
        unit = rng.choice(units)
        mean = round(10 ** rng.uniform(0, 3))
        words = rng.choice(
            ["{m} {u}", "exp {m} {u}", "uniform {m} {u} .. {n} {u}", "pareto {m} {u} 1.5"]
        )
        return f'"{words.format(m=mean, n=3 * mean, u=unit)}"'

    return make


DISCIPLINES = [
    *("pfifo", "pfifo limit 20", "bfifo limit 64k", "pfifo_head_drop limit 50", "pfifo_fast", "pfifo_fast limit 5 variant shared"),
    *("codel", "codel target 20ms interval 200ms ecn", "codel variant rfc", "codel variant ns3", "codel limit 1 ce_threshold 1ms"),
    *("fq_codel", "fq_codel flows 1 quantum 300", "fq_codel limit 10 drop_batch 1", "fq_codel memory_limit 3000 noecn"),
    *("red limit 400000 avpkt 1000", "red limit 60000 min 5000 max 15000 avpkt 1000 burst 20 ecn adaptive bandwidth 10mbit", "red"),
    *("red variant ns2", "red variant ns2 adaptive", "red variant ns3 limit 1", "adt", "adt rate 1bit", "adt limit 5 sample 10ms"),
]  # fmt: skip
WORDS = [
    *("limit 0", "limit 1", "limit 4294967295", "limit 18446744073709551616", "target 0", "interval 1", "quantum 255", "flows 65537"),
    *("variant x", "ecn", "min 1", "max 1", "avpkt 0", "burst 0", "probability 1.1", "-1", "0x10", "limit", "memory_limit 1"),
]  # fmt: skip
ODD = [
    *("nan", "inf", "-1", "0", "1", "1.5", "true", '""', '"x"', "[]", "{}", "[[]]", "[{}]", "1979-05-27", "9223372036854775807"),
    *('"0 s"', '"1 ns"', '"-5 ms"', '"nan s"', '"1e999 s"', '"10 y"', '"87600 h"', '"0 bit/s"', '"1 bit/s"', '"999 Tbit/s"'),
    *('"unlimited"', '"0 B"', '"1 B"', '"65535 B"', '"1 TB"', '"0 %"', '"100 %"', '"101 %"', '"every 0 s"', '"exp 1 ns"'),
    *('"pareto 1 kB 1.0001"', '"uniform 2 s .. 1 s"', '"spread 0 s .. 0 s"', '"mobile.csv"', '"."', '"/dev/zero"', '"gemodel 1%"'),
    *('["5 ms", 5]', '[["0 s", "0 bit/s"]]', '[["1 s", "1 Mbit/s"], ["1 s", "2 Mbit/s"]]', "{ x = 1 }", "1_000", "100000", "'*'"),
    *('"none"', '"\\u0000"', '"\\u202e"', '"htb rate 1bit"', '"atm mpu 9 header 4000000000"', "[1, 1]", "-0.0", "1e-300"),
]  # fmt: skip

TIME = {"duration": number(1, 20, "s"), "warmup": number(1, 900, "ms")}
RATE = number(0.02, 200, "Mbit/s")
LINE: dict[str, Make] = {
    "qdisc": lambda rng: f'"{rng.choice(DISCIPLINES)}"',
    "link_layer": one_of(
        '"ethernet"', '"atm"', '"docsis"', '"pppoe-ptm"', '"atm overhead 44 mpu 64 header 14"'
    ),
    "loss": one_of('"0.1 %"', "0.02", '"gemodel 1% 10%"', '"gemodel 1% 30% 50% 1%"', '"100 %"'),
    "shaper": one_of(
        '"htb rate 900kbit"', '"htb rate 5mbit burst 15k"', '"htb rate 100mbit overhead 18 mpu 64"'
    ),
    "ring": one_of("1", "2", "64", "256", "4096", "64\nbql = true", '8\ncoalesce = "5 ms"'),
    "schedule": one_of(
        '[["0 s", "0 bit/s"], ["500 ms", "5 Mbit/s"]]',
        '[["1 s", "0 bit/s"]]',
        '[["0 s", "10 Mbit/s"], ["100 ms", "64 kbit/s"]]\nrepeat = "300 ms"',
    ),
}
FLOW: dict[str, Make] = {
    "count": one_of("1", "2", "3", "10", "60"),
    "name": one_of('"a"', '"a.b"', '"x:y"', '"bulk"'),
    "start": either(
        law(lambda rng: ("0 s", rng.choice(["1 ns", "300 ms", "900 ms"]))),
        one_of('"every 100 ms"'),
    ),
    "stop": law(lambda rng: ("1 s", "2 s")),
    "rtt": law(lambda rng: (rng.choice(["500 ms", "2 s"]), "3 s")),
    "access": number(200, 1000, "Mbit/s"),
    "jitter": number(0.001, 50, "ms"),
    "dscp": one_of('"cs0"', '"ef"', '"lowdelay"', "46", '"af42"'),
}
TCP: dict[str, Make] = {
    "congestion": one_of('"cubic"', '"reno"', '"vegas"', '"ledbat"', '"bbr"'),
    "profile": one_of('"linux"', '"ns2"'),
    "ecn": one_of("true", "false"),
    "tcp": one_of(
        "{}",
        "{ max_window = 20 }",
        "{ mss = 536, sack = false }",
        "{ pacing = true, timestamps = false }",
        '{ min_rto = "1 s", timer_tick = "1 ns", delayed_ack_segments = 1 }',
        '{ handshake = false, rack = false, tlp = false, receive_buffer = "8 kB", receive_buffer_max = "8 kB" }',
        '{ write_bytes = 0, sack_delay = "0 s", quick_acks = 0, initial_window = 1 }',
    ),
}
DATAGRAMS: dict[str, Make] = {
    "packet": one_of('"1500 B"', '"40 B"', '"200 B"', '"65535 B"'),
    "ecn": TCP["ecn"],
}
KINDS: dict[str, tuple[dict[str, Make], dict[str, Make]]] = {
    # Keys that a kind must have, and keys that it may have.
    "bulk": ({}, {**TCP, "size": number(0.1, 5000, "kB")}),
    "transfers": ({"size": again("kB", "B", "MB")}, {**TCP, "pause": again("ms", "s", "us")}),
    "udp": ({"rate": RATE}, DATAGRAMS),
    "onoff": (
        {"rate": RATE, "on": again("ms", "s", "us"), "off": again("ms", "s", "us")},
        DATAGRAMS,
    ),
    "ping": ({}, {"interval": number(1, 3000, "ms"), "packet": DATAGRAMS["packet"]}),
    "video": (
        {"rate": number(0.01, 30, "Mbit/s")},
        {
            "fps": one_of("25", "60", "1", "0.01", "1000"),
            "gop": one_of("1", "25", "100000"),
            "i_ratio": one_of("1", "4.0", "50"),
            "cv": one_of("0", "0.25", "3"),
            "payload": one_of('"1200 B"', '"1 B"', '"60 kB"'),
        },
    ),
}
RECORD: dict[str, Make] = {
    "queue": number(1, 500, "ms"),
    "flow": number(1, 500, "ms"),
    "packets": one_of("true", "false"),
}
SWEPT = [
    '"bottleneck.qdisc" = ["pfifo", "codel", "fq_codel"]',
    '"flow.*.count" = [1, 2]',
    '"flow.0.rtt" = ["200 ms", "3 s"]',
    '"bottleneck.rate" = ["1 Mbit/s", "10 Mbit/s"]',
    '"seed" = [1, 2]',
]
SURPRISES = [
    "rtt",
    "rate",
    "via",
    "kind",
    "trace",
    "frames",
    "seed",
    "qdisc",
    "limit",
    '"a.b"',
    "from",
    "name",
]


class Writer:
    """Writes one sentence of the language. `wrong` is the share of wrong values and keys."""

    def __init__(self, rng: random.Random, wrong: float) -> None:
        self.rng = rng
        self.wrong = wrong
        self.lines: list[str] = []

    def keys(self, always: dict[str, Make], perhaps: dict[str, Make], share: float = 0.25) -> None:
        """Writes lines `key = value`."""
        chosen = dict(always)
        chosen.update({key: make for key, make in perhaps.items() if self.rng.random() < share})
        for key, make in chosen.items():
            self.lines.append(f"{key} = {self._value(key, make)}")
        if self.rng.random() < self.wrong / 4:
            self.lines.append(f"{self.rng.choice(SURPRISES)} = {self.rng.choice(ODD)}")

    def _value(self, key: str, make: Make) -> str:
        if self.rng.random() >= self.wrong:
            return make(self.rng)
        if key == "qdisc" and self.rng.random() < 0.7:
            return f'"{self.rng.choice(DISCIPLINES)} {self.rng.choice(WORDS)}"'
        return self.rng.choice(ODD)

    def scenario(self) -> str:
        """Returns a complete file."""
        rng = self.rng
        seeds = {
            "seed": one_of("0", "1", "9223372036854775807"),
            "seeds": one_of("1", "2", "[3, 8]"),
        }
        self.keys(
            {"duration": TIME["duration"]},
            {"warmup": TIME["warmup"], "title": one_of('"t"', '"µ <b>"')},
        )
        self.keys({}, dict([rng.choice(list(seeds.items()))]))
        nodes = self._links() if rng.random() < 0.4 else []
        if not nodes:
            self._bottleneck()
        for _ in range(rng.choice([1, 1, 2, 3, 5])):
            self._flow(nodes)
        if rng.random() < 0.3:
            self.lines.append("[record]")
            self.keys({}, RECORD, 0.5)
        if rng.random() < 0.1:
            self.lines += ["[sweep]", *rng.sample(SWEPT, rng.choice([1, 1, 2]))]
        return "\n".join(self.lines) + "\n"

    def _bottleneck(self) -> None:
        self.lines.append("[bottleneck]")
        rate = either(RATE, RATE, RATE, RATE, one_of('"unlimited"'))
        self.keys({"rate": rate, "delay": number(0.01, 100, "ms")}, LINE)
        for way in ("up", "down"):
            if self.rng.random() < 0.2:
                self.lines.append(f"[bottleneck.{way}]")
                self.keys({}, {"rate": RATE, **LINE})

    def _links(self) -> list[str]:
        nodes = [f"n{i}" for i in range(self.rng.choice([2, 2, 3, 4, 7]))]
        pairs = list(itertools.pairwise(nodes))
        if self.rng.random() < 0.2:
            pairs.append((nodes[-1], nodes[0]))
        for source, target in pairs:
            self.lines += ["[[link]]", f'from = "{source}"', f'to = "{target}"']
            delay = either(number(0.01, 40, "ms"), number(0.01, 40, "ms"), one_of('"0 s"'))
            duplex = {"duplex": one_of("true", "true", "false"), "name": one_of('"wan"', '"lan"')}
            self.keys(
                {"rate": either(RATE, RATE, one_of('"unlimited"')), "delay": delay},
                {**LINE, **duplex},
                0.15,
            )
        return nodes

    def _flow(self, nodes: list[str]) -> None:
        kind = self.rng.choice(list(KINDS))
        always, perhaps = KINDS[kind]
        self.lines += ["[[flow]]", f'kind = "{kind}"']
        if nodes:
            source, target = self.rng.sample(nodes, 2)
            self.lines += [f'from = "{source}"', f'to = "{target}"']
        elif self.rng.random() < 0.4:
            self.lines.append(f'direction = "{self.rng.choice(["up", "down"])}"')
        self.keys(always, {**perhaps, **FLOW})


def exchanged(rng: random.Random, text: str) -> str:
    """Returns an example with keys and values exchanged, removed, repeated or replaced by odd
    ones."""
    lines = text.splitlines()
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(lines))
        key, equals, _ = lines[at].partition("=")
        match rng.randrange(5):
            case 0:
                del lines[at]
            case 1:
                lines.insert(rng.randrange(len(lines) + 1), lines[at])
            case 2 if equals:
                lines[at] = f"{key}= {rng.choice(ODD)}"
            case 3 if equals:
                values = [line.partition("=")[2] for line in lines if "=" in line]
                lines[at] = f"{key}={rng.choice(values)}"
            case _:
                lines[at] = f"{rng.choice(SURPRISES)} = {rng.choice(ODD)}"
        if not lines:
            lines = [""]
    return "\n".join(lines) + "\n"


def damaged(rng: random.Random, text: str) -> bytes:
    """Returns an example with bytes changed, removed and repeated."""
    data = bytearray(text.encode())
    for _ in range(rng.choice([1, 2, 8, 40])):
        at = rng.randrange(len(data))
        match rng.randrange(4):
            case 0:
                data[at] = rng.randrange(256)
            case 1:
                del data[at : at + rng.choice([1, 5, 100])]
            case 2:
                data[at:at] = data[at : at + 20] * rng.choice([1, 3, 200])
            case _:
                data[at:at] = rng.choice(b"[]{}\"'.=,\n\x00\xff#0e-").to_bytes()
        if not data:
            data = bytearray(b"\n")
    return bytes(data)


def case(index: int) -> bytes:
    """Returns the file with this number."""
    rng = random.Random(index)
    example = rng.choice(sorted(EXAMPLES.glob("*.toml"))).read_text(encoding="utf-8")
    # A few seconds test an example's words as well as its full minute does.
    example = (
        example.replace('"60 s"', '"4 s"').replace('"30 s"', '"3 s"').replace('"5 s"', '"1 s"')
    )
    match index % 8:
        case 0 | 1 | 2:
            return Writer(rng, 0.0).scenario().encode()
        case 3 | 4 | 5:
            return Writer(rng, rng.choice([0.03, 0.1, 0.3])).scenario().encode()
        case 6:
            return exchanged(rng, example).encode()
        case _:
            return damaged(rng, example)


# --------------------------------------------------------------------------------------- one case


@dataclass(frozen=True)
class Result:
    """The outcome of one case."""

    index: int
    outcome: str
    """ran, refused, cut (by the CPU limit, still advancing) or failed."""
    why: str
    bytes: int
    cpu_s: float


def child(path: Path, cpu_s: float) -> None:
    """Becomes `sojourn run PATH --json`, with limits. Never returns."""
    from sojourn import _core, cli

    with (path.parent / "out").open("wb") as out, (path.parent / "err").open("wb") as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    simulate = _core.run
    passed = {"ns": 0, "since": 0.0}

    def watched(
        realised: _core.Realised,
        reached: Callable[[int], bool] | None = None,
        *own: Any,
    ) -> _core.SeedTables:
        # The CPU limit without progress starts here: until now the process may have compiled the
        # user's own code.
        before, passed["since"] = passed["ns"], time.process_time()
        passed["since"] = time.process_time()

        def notes(now_ns: int) -> bool:
            if before + now_ns > passed["ns"]:
                passed.update(ns=before + now_ns, since=time.process_time())
            return reached is None or reached(now_ns)

        tables = simulate(realised, notes, *own)
        # Only the results remain to be written. Large results take long, which is not a lack of
        # progress.
        passed.update(ns=passed["ns"] + 1, since=math.inf)
        return tables

    def stop(_signal: int, _frame: object) -> None:
        if time.process_time() - passed["since"] > cpu_s / 2:
            (path.parent / "stuck").write_text(
                f"no simulated time passed after {passed['since']:.1f} s of CPU"
            )
        raise KeyboardInterrupt

    _core.run = watched
    signal.signal(signal.SIGPROF, stop)
    passed["since"] = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    # The signal may arrive at any line. The process must end here in any case: otherwise it would
    # go on as its parent and remove the parent's folder.
    code = 99
    try:
        try:
            code = cli.status(["run", str(path), "--json", "--quiet", "--jobs", "1"])
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else 98
        except BaseException:
            import traceback

            traceback.print_exc()
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def judged(
    index: int, folder: Path, status: int, used: resource.struct_rusage, late: bool
) -> Result:
    """Returns the verdict on a process that has ended."""
    out, err = (
        (folder / name).read_text(encoding="utf-8", errors="replace") for name in ("out", "err")
    )
    size, cpu_s = used.ru_maxrss * 1024, used.ru_utime + used.ru_stime
    code = os.waitstatus_to_exitcode(status)
    outcome = {0: "ran", 2: "refused", 130: "cut"}.get(code, "failed")
    why = ""
    if late:
        why = "did not end"
    elif (folder / "stuck").exists():
        why = (folder / "stuck").read_text()
    elif outcome == "failed":
        why = f"exit status {code}: {err.strip().splitlines()[-1:]}"
    elif "Traceback" in err:
        why = "a traceback"
    elif outcome == "refused" and not any(line.startswith("error: ") for line in err.splitlines()):
        why = f"refused without a reason: {err[:200]!r}"
    elif outcome == "ran":
        why = _wrong_output(out, err)
    if size > MOST_BYTES:
        why = f"{why}; " * bool(why) + f"{size / 1e6:.0f} MB"
    return Result(index, "failed" if why else outcome, why, size, cpu_s)


def _wrong_output(out: str, err: str) -> str:
    def no_constant(name: str) -> None:
        raise ValueError(name)

    try:
        json.loads(out, parse_constant=no_constant)
    except ValueError as error:
        return f"stdout is not JSON: {error}"
    talk = [line for line in err.splitlines() if not line.startswith(("note: ", "hint: "))]
    return f"stderr: {talk[0]!r}" if talk else ""


def run_all(
    cases: Iterator[tuple[int, bytes]],
    cpu_s: float,
    workers: int,
    home: Path,
    beside: Sequence[Path] = (),
) -> Iterator[Result]:
    """Runs each case in its own process, `workers` at a time, with copies of the files `beside`
    it."""
    running: dict[int, tuple[int, Path, float]] = {}
    left = True
    while left or running:
        while left and len(running) < workers:
            following = next(cases, None)
            if following is None:
                left = False
                break
            index, data = following
            folder = home / str(index)
            folder.mkdir()
            shutil.copy(EXAMPLES / "mobile.csv", folder)
            for source in beside:
                shutil.copy(source, folder)
            path = folder / "case.toml"
            path.write_bytes(data)
            pid = os.fork()
            if pid == 0:
                child(path, cpu_s)
            running[pid] = (index, folder, time.monotonic() + WALL_PER_CPU * cpu_s)
        for pid, (index, folder, until) in list(running.items()):
            done, status, used = os.wait4(pid, os.WNOHANG)
            late = not done and time.monotonic() > until
            if late:
                os.kill(pid, signal.SIGKILL)
                done, status, used = os.wait4(pid, 0)
            if done:
                del running[pid]
                yield judged(index, folder, status, used, late)
                shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.002)


# ------------------------------------------------------------------------------------------- main


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=int, default=3000, help="number of cases [3000]")
    parser.add_argument("--first", type=int, default=0, help="number of the first case [0]")
    parser.add_argument("--cpu", type=float, default=4.0, help="CPU limit of a case in seconds [4]")
    parser.add_argument("--workers", type=int, default=2, help="cases at a time [2]")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="keep the files of failed cases here"
    )
    parser.add_argument(
        "--show", type=int, metavar="N", help="print the file of case N and run nothing"
    )
    parser.add_argument(
        "--file", type=Path, action="append", help="run this file instead of generated ones"
    )
    options = parser.parse_args()
    if options.show is not None:
        sys.stdout.buffer.write(case(options.show))
        return 0
    # Modules that every case needs are imported once. No thread is started before the forks.
    import sojourn.cli
    import sojourn.engine
    import sojourn.metrics  # noqa: F401

    numbers = range(options.first, options.first + options.cases)
    files = [path.read_bytes() for path in options.file or ()]
    beside = sorted({each for path in options.file or () for each in path.parent.glob("*.py")})
    cases = enumerate(files) if files else ((index, case(index)) for index in numbers)
    counts: Counter[str] = Counter()
    largest = Result(-1, "", "", 0, 0.0)
    with (
        tempfile.TemporaryDirectory(prefix="sojourn-fuzz-") as home,
        contextlib.ExitStack() as stack,
    ):
        os.environ.update(TMPDIR=home, XDG_STATE_HOME=home, XDG_CACHE_HOME=home)
        tempfile.tempdir = None
        stack.callback(signal.signal, signal.SIGPROF, signal.SIG_DFL)
        for done, result in enumerate(
            run_all(iter(cases), options.cpu, options.workers, Path(home), beside), 1
        ):
            counts[result.outcome] += 1
            largest = max(largest, result, key=lambda one: one.bytes)
            if result.outcome == "failed":
                print(f"case {result.index}: {result.why}", flush=True)
                if options.keep:
                    options.keep.mkdir(parents=True, exist_ok=True)
                    data = files[result.index] if files else case(result.index)
                    (options.keep / f"case-{result.index}.toml").write_bytes(data)
            if done % 100 == 0 and sys.stderr.isatty():
                print(
                    f"\r{done} of {len(files) or options.cases}",
                    end="\r",
                    file=sys.stderr,
                    flush=True,
                )
    status = ended(counts)
    print(f"largest: {largest.bytes / 1e6:.0f} MB (case {largest.index})")
    return status


def ended(counts: Counter[str]) -> int:
    """Prints how many cases ended in which way. Returns the exit status."""
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
