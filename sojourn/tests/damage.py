"""Damaged and hostile Run folders for tests: each has one change, the same for the same seed."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sojourn.cli import status
from sojourn.records import META, SCENARIO, SUMS

STRANGE: tuple[Any, ...] = (
    None, True, -1, 0, 1.5, 2**70, 10**400, -1e300, float("nan"), "", "x", "../x", "\x1b]0;x\x07", "1", [], {}, [1], [[]], {"x": 1}, ["a", 2],
)  # fmt: skip


def spoil(run: Path, seed: int) -> str:
    """Changes one thing in the Run in this folder; returns its description."""
    rng = random.Random(seed)
    # The kinds of damage take turns, so that a few dozen seeds cover all of them.
    damage = DAMAGES[seed % len(DAMAGES)]
    return f"{damage.__name__.lstrip('_')} {damage(run, rng)}"


def _value_of_meta(run: Path, rng: random.Random) -> str:
    meta = json.loads((run / META).read_text())
    at, key, where = _somewhere(meta, rng)
    at[key] = rng.choice(STRANGE)
    (run / META).write_text(json.dumps(meta))
    return f"{where} = {str(at[key])[:40]!r}"


def _missing_in_meta(run: Path, rng: random.Random) -> str:
    meta = json.loads((run / META).read_text())
    at, key, where = _somewhere(meta, rng)
    del at[key]
    (run / META).write_text(json.dumps(meta))
    return where


def _twice_in_meta(run: Path, rng: random.Random) -> str:
    meta = json.loads((run / META).read_text())
    name = rng.choice([key for key, value in meta.items() if isinstance(value, list) and value])
    meta[name].append(rng.choice(meta[name]))
    (run / META).write_text(json.dumps(meta))
    return str(name)


def _text_of_meta(run: Path, rng: random.Random) -> str:
    file = run / META
    text = file.read_bytes()
    cut = rng.randrange(len(text))
    file.write_bytes(
        rng.choice(
            [text[:cut], b"", b"[" * 100_000, b"\xff" + text, text[:cut] + b"\0" + text[cut:]]
        )
    )
    return f"at {cut}"


def _truncated(run: Path, rng: random.Random) -> str:
    file = _table(run, rng)
    content = file.read_bytes()
    file.write_bytes(content[: rng.choice([0, 1, 4, rng.randrange(len(content))])])
    return file.name


def _flipped(run: Path, rng: random.Random) -> str:
    file = _table(run, rng)
    content = bytearray(file.read_bytes())
    at = rng.randrange(len(content))
    content[at] ^= 1 << rng.randrange(8)
    file.write_bytes(content)
    return f"{file.name} at {at}"


def _swapped(run: Path, rng: random.Random) -> str:
    one, other = _table(run, rng), _table(run, rng)
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    return f"{one.name} and {other.name}"


def _gone(run: Path, rng: random.Random) -> str:
    file = rng.choice([_table(run, rng), run / SCENARIO, *run.glob(f"seed-*/{SUMS}")])
    file.unlink()
    return file.name


def _folder_instead(run: Path, rng: random.Random) -> str:
    file = rng.choice([_table(run, rng), run / META, run / SCENARIO])
    file.unlink()
    file.mkdir()
    return file.name


def _link_instead(run: Path, rng: random.Random) -> str:
    file = rng.choice([_table(run, rng), run / META])
    to = rng.choice([file.name, "/dev/null", "/etc/passwd", _table(run, rng), "nowhere"])
    file.unlink()
    file.symlink_to(to)
    return f"{file.name} to {to}"


def _sums(run: Path, rng: random.Random) -> str:
    for file in run.glob(f"seed-*/{SUMS}"):
        file.write_text(rng.choice(["", "x\n", file.read_text().replace("a", "b")]))
    return ""


def _seed_gone(run: Path, _luck: random.Random) -> str:
    shutil.rmtree(run / "seed-1")
    return ""


DAMAGES: tuple[Callable[[Path, random.Random], str], ...] = (
    _value_of_meta, _truncated, _value_of_meta, _flipped, _missing_in_meta, _swapped, _value_of_meta, _gone, _twice_in_meta,
    _folder_instead, _value_of_meta, _link_instead, _text_of_meta, _value_of_meta, _sums, _missing_in_meta, _seed_gone,
)  # fmt: skip
"""Values of the wrong type, with which most fields of a Run may be damaged."""
CASES = range(2 * len(DAMAGES))


def refused_or_read(
    whole: Path, case: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Damages a copy of a Run and has a verb read it: the exit status is 0 or 2, and there is no
    exception. One verb is enough for each case, because all verbs read a Run in the same way."""
    spoilt = Path(shutil.copytree(whole, folder / "spoilt"))
    spoil(spoilt, case)
    verbs = (
        ["report", str(spoilt), f"-o{folder / 'page.html'}"],
        ["compare", str(whole), str(spoilt)],
        ["export", str(spoilt), f"-o{folder / 'x.csv'}", f"-o{folder / 'x.flent.gz'}", "-q"],
    )
    words = verbs[case % 3]
    result = status(words)
    said = capsys.readouterr()
    assert result in (0, 2), words
    assert "\x1b" not in said.out + said.err
    if result == 2:
        # The page of an interrupted measurement may also contain a warning.
        assert "error: " in said.err.lower(), said.err


def _table(run: Path, rng: random.Random) -> Path:
    return rng.choice(sorted(file for file in run.glob("seed-*/*.parquet") if file.is_file()))


def _somewhere(meta: Any, rng: random.Random) -> tuple[Any, Any, str]:
    """A place in plain values: its container, its key there, and its path."""
    at, path = meta, []
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = rng.choice(keys)
        path.append(str(key))
        if not isinstance(at[key], dict | list) or not at[key] or rng.random() < 0.25:
            return at, key, ".".join(path)
        at = at[key]
