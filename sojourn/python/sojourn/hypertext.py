"""Tables as HTML, for notebooks (`_repr_html_`). Whatever is handed over is text, never markup."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """A table whose first column names its rows."""
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    head = "".join(f"<th>{escape(each)}</th>" for each in header)
    body = "".join(f"<tr><th>{escape(first)}</th>{_cells(rest)}</tr>" for first, *rest in rows)
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(values: Sequence[str]) -> str:
    return "".join(f"<td>{escape(each)}</td>" for each in values)


def lines(title: str, *facts: str) -> str:
    """A title, and a line for each fact that is not empty."""
    said = "".join(f"<br/>{escape(fact)}" for fact in facts if fact)
    return f"<p><strong>{escape(title)}</strong>{said}</p>"
