"""Generated pages are up to date with the code's declarations and the recorded runs. The recorded
runs are up to date with this engine."""

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tree import ROOT


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATE = generator()


def recorded() -> dict[str, Any]:
    """Returns the numbers of *Three situations*."""
    record = json.loads(GENERATE.situations.RECORD.read_text(encoding="utf-8"))
    numbers: dict[str, Any] = record["numbers"]
    return numbers


def test_each_generated_page_is_up_to_date() -> None:
    pages: dict[Path, str] = GENERATE.pages()
    assert pages
    for file, text in pages.items():
        assert file.read_text(encoding="utf-8") == text, f"{file.name}: run python docs/generate.py"


def test_the_readme_s_ping_numbers_are_up_to_date() -> None:
    now = GENERATE.situations.measured(["home-uplink"], ["pfifo", "cake"])
    for words, numbers in now["home-uplink"].items():
        assert recorded()["home-uplink"][words] == numbers, "run python docs/generate.py --all"


@pytest.mark.long
def test_the_table_of_three_situations_is_up_to_date() -> None:
    assert GENERATE.situations.measured() == recorded(), "run python docs/generate.py --all"


def test_the_table_of_the_tutorial_has_the_recorded_numbers() -> None:
    text = (ROOT / "docs" / "learn" / "tutorial.md").read_text(encoding="utf-8")
    [printed] = [block.text for block in GENERATE.blocks.find(text) if block.printed]
    users = printed.partition("users ")[2].partition("\n\n")[0]
    # Columns: name, idle, mean and p95.
    rows = re.findall(r"^(\w+) +\S+ ±\S+ +\S+ ±\S+ +([\d.]+) ±", users, flags=re.MULTILINE)
    assert len(rows) == 6
    for words, shown in rows:
        p95 = recorded()["home-uplink"][words]["ping_p95_ms"]
        assert shown == f"{p95:#.3g}".rstrip("."), words
