"""Writes the parts of the pages that come from declarations in the code and from recorded runs. A
test compares the pages with the declarations and the records.

python docs/generate.py          from the declarations and records: seconds
python docs/generate.py --all    simulates the records again first: the tables of docs/validation.md
                                 and docs/qdiscs.md, the printed outputs of pages, and the picture of
                                 the home uplink: some ten minutes of CPU time

The numbers of docs/performance.md are measured on a quiet machine, by benches/ with --record.
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
"""The page that runs `make demo`; the picture shows its Runs."""

WHOLE = ": whole"
"""Entries of benches/first_minute.py whose names end with this are in CONTRIBUTING.md, not in
docs/performance.md."""

_INTRODUCTION = """\
# Tables

`python docs/generate.py` makes this page from [sojourn/crates/tables](../sojourn/crates/tables/src/declared.rs),
which declares each table. All engines write these tables, one file each in `seed-N/` of a Run's folder.

- Units are in the names. Times are ns since the run began.
- Totals and histograms leave the warm-up out; time lines don't. The measured time is from the end of
  the warm-up to the end of the run, both instants included. An event at the last instant of the
  warm-up is not in the row of a time line that ends there; the last row includes the end of the run.
- *integer*: below 2^63 (Int64). *real*: a double (Float64): means, the disciplines' own state, and sums
  that pass 2^63 in a run of years. *link*, *flow*, *cause*: a name (String), as in `meta.json`.
- A missing value is null. Engines return it as -1 in a column of integers and as NaN in one of reals.
  A column without an entry under *null* always has a value.
- `sojourn list schemas tables` prints the JSON Schema (2020-12) of a seed's tables as lists of rows.
- CPU time is in `meta.json` (`cpu_s`), not here: tables are byte-identical from run to run.
"""


def tables_page() -> str:
    """docs/tables.md."""
    return "\n".join((_INTRODUCTION, *_sections()))


def _sections() -> Iterator[str]:
    for table in TABLES.values():
        yield f"## {table.name}\n"
        yield table.about + "\n"
        yield "| column | type | meaning | null |"
        yield "|---|---|---|---|"
        yield from map(_row, table.columns)
        yield ""


def _row(column: ColumnSchema) -> str:
    return f"| {column.name} | {column.kind} | {column.meaning} | {column.null or ''} |"


_OF_JSON = """\
# Schemas of `--json`

`python docs/generate.py` makes this page from the shapes of each package's outputs. The first key of an output,
`schema`, has the name and version of its shape: `sojourn/run/1`. A new key needs no new version; a removed
key, or one with a new meaning, does. `sojourn list schemas` lists the shapes, and `sojourn list schemas
run` prints the JSON Schema (2020-12) of `sojourn run --json`. [output.md](output.md) explains the keys.
"""


def json_page() -> str:
    """docs/json.md."""
    return "\n".join((_OF_JSON, *_shapes()))


def _shapes() -> Iterator[str]:
    for name in outputs.installed():
        schema = schemas.make(name)
        yield f"## {outputs.identifier(name)}\n"
        yield schema["description"] + "\n"
        yield "| key | type | |"
        yield "|---|---|---|"
        for key, value in schema["properties"].items():
            meaning = " ".join(value.get("description", "").split())
            yield f"| `{key}` | {_type(value)} | {meaning} |"
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
    """The pages with tables from records, filled in."""
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
    """Simulates the pages' runs again: records, printed outputs, and the picture."""
    places.record_of(situations.RECORD, situations.measured())
    if validate.main(["--record"]):
        raise SystemExit("error: benches/validate.py --record failed")
    for path in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]):
        page = path.read_text(encoding="utf-8")
        if any(block.printed for block in blocks.find(page)):
            with tempfile.TemporaryDirectory() as folder:
                _print_again(path, page, Path(folder))


def _print_again(path: Path, page: str, folder: Path) -> None:
    """Replaces a page's printed outputs by those of a new run of its commands."""
    player = blocks.Player(path.name, folder, long=True)
    for block in blocks.find(page):
        if block.before.get("printed") == "" and player.output is not None:
            page = blocks.reprinted(page, block, player.output)
        elif not block.printed:
            player.play(block)
    path.write_text(page, encoding="utf-8")
    if path.name == DEMO:
        figures.save(figures.cdf(Run.find(folder / "demo"), "ping"), PICTURE)


def pages() -> dict[Path, str]:
    """The files that this program writes, and their texts."""
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
