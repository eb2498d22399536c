"""Hostile user-defined classes, a few of those in benches/fuzz_own.py. Each is refused with a
message, or computes the same as Python. Another test checks that the fuzzer detects failures."""

import random
import subprocess
import sys
from collections import Counter

import pytest
from tree import ROOT

sys.path.insert(0, str(ROOT / "benches"))
pytest.importorskip("numba", reason="pip install sojourn[own]")

import fuzz_own


def test_hostile_classes_are_refused_or_run() -> None:
    outcomes = Counter(fuzz_own.judged(index, False) for index in range(9000, 9100))
    assert not [each for each in outcomes if each.outcome == "failed"]
    assert sum(count for each, count in outcomes.items() if each.outcome == "read") > 30
    assert sum(count for each, count in outcomes.items() if each.outcome == "refused") > 15


@pytest.mark.long
def test_a_class_computes_what_python_does_and_a_difference_is_detected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert fuzz_own.judged(20, True).outcome == "ran"
    source = (
        "from sojourn.own import Discipline\nclass Mine(Discipline):\n    x: int = 0\n"
        "    def dequeue(self, packet, link):\n        self.x = self.x + packet.bytes\n        return 0\n"
    )
    law = fuzz_own.language.read(source, "case.py", "Mine", "")
    assert fuzz_own.compared(source, law, random.Random(1)) == ""
    monkeypatch.setattr(fuzz_own, "_whole", lambda number: number + 1)
    assert "dequeue left x at" in fuzz_own.compared(source, law, random.Random(1))


@pytest.mark.long
def test_many_hostile_classes_are_refused_or_run() -> None:
    done = subprocess.run(
        [sys.executable, "benches/fuzz_own.py", "--cases", "400", "--first", "20000"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
