"""Writes what of the pages follows from declarations in the code, and from records of runs; a test holds
them against both.

python docs/generate.py          of what is declared and recorded: seconds
python docs/generate.py --all    after simulating anew what is recorded: the tables of docs/validation.md
                                 and docs/qdiscs.md, what pages have as printed, and the home uplink's
                                 picture: some ten minutes of CPU time

docs/performance.md is measured, on a quiet machine, by benches/ with --record.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sojourn import Run, figures, outputs, schemas
from sojourn.records import TABLES, ColumnSchema

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "docs" / "site"), str(ROOT / "benches")]

import blocks  # noqa: E402
import drawings  # noqa: E402
import page as places  # noqa: E402
import situations  # noqa: E402
import validate  # noqa: E402

PICTURE = ROOT / "docs" / "home-uplink.png"
DEMO = "tutorial.md"
"""The page that runs `make demo`, of whose Runs the picture is."""

WHOLE = ": whole"
"""The end of the names of what CONTRIBUTING.md says of benches/first_minute.py's times."""

_INTRODUCTION = """\
# Tables

Made by `python docs/generate.py` from [sojourn/crates/tables](../sojourn/crates/tables/src/declared.rs), where each
table is declared once. All engines write these tables, one file each in `seed-N/` of a Run's folder.

- Units are in the names. Times are ns since the run began.
- Totals and histograms leave the warm-up out; time lines don't. What is measured goes from the end of
  the warm-up to the end of the run, both instants included. A row of a time line that ends with the
  warm-up leaves that instant out; the last row includes the end.
- *integer*: below 2^63 (Int64). *real*: a double (Float64): means, the disciplines' own state, and sums
  that pass 2^63 in a run of years. *link*, *flow*, *cause*: a name (String), as in `meta.json`.
- What there is none of is null. An engine hands it over as -1 in a column of integers and as NaN in one
  of reals. A column without an entry under *null* always has a value.
- `sojourn list schemas tables` prints their JSON Schema (2020-12): it is of a seed's tables as lists
  of rows.
- CPU time is in `meta.json` (`cpu_s`), not here: tables are byte-identical from run to run.
"""


def tables_page() -> str:
    """docs/tables.md."""
    return "\n".join((_INTRODUCTION, *_sections()))


def _sections() -> Iterator[str]:
    for table in TABLES.values():
        yield f"## {table.name}\n"
        yield table.about + "\n"
        yield "| column | type | what it holds | null |"
        yield "|---|---|---|---|"
        yield from map(_row, table.columns)
        yield ""


def _row(column: ColumnSchema) -> str:
    return f"| {column.name} | {column.kind} | {column.meaning} | {column.null or ''} |"


_OF_JSON = """\
# Schemas of `--json`

Made by `python docs/generate.py` from `outputs.py` of each package. The first key of an output, `schema`,
names its shape and the shape's version: `sojourn/run/1`. A key may be added without a new version; one
that goes, or changes its meaning, needs one. `sojourn list schemas` lists them, and
`sojourn list schemas run` prints the JSON Schema (2020-12) of `sojourn run --json`.
[output.md](output.md) says more about what the keys hold.
"""


def json_page() -> str:
    """docs/json.md."""
    return "\n".join((_OF_JSON, *_shapes()))


def _shapes() -> Iterator[str]:
    for name in outputs.installed():
        whole = schemas.make(name)
        yield f"## {outputs.identifier(name)}\n"
        yield whole["description"] + "\n"
        yield "| key | type | |"
        yield "|---|---|---|"
        for key, value in whole["properties"].items():
            yield f"| `{key}` | {_type(value)} | {value.get('description', '')} |"
        yield ""


def _type(value: dict[str, Any]) -> str:
    if "$ref" in value:
        return "object " + value["$ref"].rsplit("/", 1)[1].partition("_")[0]
    if "anyOf" in value:
        return " or ".join(map(_type, value["anyOf"]))
    if "const" in value:
        return f"`{value['const']}`"
    kind = str(value.get("type", "any"))
    return f"list of {_type(value['items'])}" if kind == "array" else kind


def _when(record: dict[str, Any], command: str) -> str:
    return f"Run on {record['date']} at commit {record['commit']}, by `{command}`."


def filled() -> dict[Path, str]:
    """The pages with tables of records."""
    validation = json.loads(validate.RECORD.read_text(encoding="utf-8"))
    measured = places.recorded()
    three = json.loads(situations.RECORD.read_text(encoding="utf-8"))
    texts = {
        "docs/performance.md": {
            name: text for name, text in measured.items() if not name.endswith(WHOLE)
        },
        "CONTRIBUTING.md": {name: text for name, text in measured.items() if name.endswith(WHOLE)},
        "docs/validation.md": {
            "validate: agreement": places.as_markdown(validate.agreement(validation["numbers"])),
            "validate: examples": places.as_markdown(validate.examples(validation["numbers"])),
            "validate: when": _when(validation, "benches/validate.py --record"),
        },
        "docs/qdiscs.md": {
            "situations: table": places.as_markdown(situations.table(three["numbers"])),
            "situations: when": _when(three, "docs/generate.py --all"),
        },
        "README.md": {"situations: result": situations.result(three["numbers"])},
    }
    return {
        ROOT / path: places.filled((ROOT / path).read_text(encoding="utf-8"), of_page)
        for path, of_page in texts.items()
    }


def run_again() -> None:
    """Simulates anew what pages have of runs: records, what is printed, and the picture."""
    places.record_of(situations.RECORD, situations.measured())
    if validate.main(["--record"]):
        raise SystemExit("error: benches/validate.py --record failed")
    for path in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]):
        page = path.read_text(encoding="utf-8")
        if any(block.printed for block in blocks.find(page)):
            with tempfile.TemporaryDirectory() as folder:
                _print_again(path, page, Path(folder))


def _print_again(path: Path, page: str, folder: Path) -> None:
    """A page's outputs, of its commands as they are run now."""
    player = blocks.Player(path.name, folder, long=True)
    for block in blocks.find(page):
        if block.before.get("printed") == "" and player.said is not None:
            page = blocks.reprinted(page, block, player.said)
        elif not block.printed:
            player.play(block)
    path.write_text(page, encoding="utf-8")
    if path.name == DEMO:
        figures.save(figures.cdf(Run.find(folder / "demo"), "ping"), PICTURE)


def pages() -> dict[Path, str]:
    """What is written: each file and its text."""
    drawn = {ROOT / "docs" / "concepts" / name: text for name, text in drawings.files().items()}
    return {
        **drawn,
        **filled(),
        ROOT / "docs" / "tables.md": tables_page(),
        ROOT / "docs" / "json.md": json_page(),
    }


if __name__ == "__main__":
    if sys.argv[1:] == ["--all"]:
        run_again()
    elif sys.argv[1:]:
        raise SystemExit(__doc__)
    for file, text in pages().items():
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
