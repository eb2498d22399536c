"""Writes the pages that follow from declarations in the code; a test holds them against it.

python docs/generate.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sojourn.records import TABLES, ColumnSchema

ROOT = Path(__file__).parent.parent

_INTRODUCTION = """\
# Tables

Made by `python docs/generate.py` from [crates/tables](../crates/tables/src/declared.rs), where each
table is declared once. All engines write these tables, one file each in `seed-N/` of a Run's folder.

- Units are in the names. Times are ns since the run began.
- Totals and histograms leave the warm-up out; time lines don't. What is measured goes from the end of
  the warm-up to the end of the run, both instants included. A row of a time line that ends with the
  warm-up leaves that instant out; the last row includes the end.
- *integer*: below 2^63 (Int64). *real*: a double (Float64): means, the disciplines' own state, and sums
  that pass 2^63 in a run of years. *link*, *flow*, *cause*: a name (String), as in `meta.json`.
- What there is none of is null. An engine hands it over as -1 in a column of integers and as NaN in one
  of reals. A column without an entry under *null* always has a value.
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


def pages() -> dict[Path, str]:
    """What is written: each file and its text."""
    return {ROOT / "docs" / "tables.md": tables_page()}


if __name__ == "__main__":
    for file, text in pages().items():
        file.write_text(text, encoding="utf-8")
