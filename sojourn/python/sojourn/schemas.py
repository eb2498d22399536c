"""The JSON Schemas (2020-12) of the output of `--json` and of a seed's tables, made on demand.

msgspec makes the schemas of outputs from their shapes. It leaves out the fields' docstrings and
order, which come from the source of the shape. A seed's tables are declared in Rust.
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
from typing_extensions import get_original_bases, is_typeddict

from sojourn import extras, outputs
from sojourn.meta import FORMAT
from sojourn.records import TABLES, ColumnSchema, TableSchema

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TABLES_OF_A_SEED = "tables"


def names() -> list[str]:
    """Each output of the installed packages, and the tables of a seed."""
    return [*outputs.installed(), TABLES_OF_A_SEED]


def identifier(name: str) -> str:
    """The name of a schema with its version."""
    if name == TABLES_OF_A_SEED:
        return f"sojourn/{name}/{FORMAT}"
    return outputs.identifier(name)


def make(name: str) -> dict[str, Any]:
    """The JSON Schema of this name."""
    if name == TABLES_OF_A_SEED:
        return _tables()
    _, place = outputs.installed()[name]
    shape: type = extras.load(place)
    shapes = {each.__name__: each for each in _shapes(shape)}
    _, made = msgspec.json.schema_components(
        [each for each in shapes.values() if not hasattr(each, "__parameters__")],
        ref_template="#/$defs/{name}",
    )
    for described in made.values():
        # "MeanAndInterval[float | None]" has the shape MeanAndInterval.
        _describe(described, shapes[described["title"].partition("[")[0]])
    whole = made.pop(shape.__name__)
    whole["properties"]["schema"] = {"const": identifier(name)}
    return {"$schema": DIALECT, **whole, "$defs": made}


def text(name: str) -> str:
    """The JSON Schema as the text of a file."""
    return json.dumps(make(name), indent=1, ensure_ascii=False) + "\n"


def _shapes(kind: Any) -> Iterator[type]:
    """A TypedDict and the TypedDicts in its fields."""
    for mark in getattr(kind, "__metadata__", ()):
        for shape in (mark.extra or {}).get("shapes", ()):
            yield from _shapes(shape)
    shape = get_origin(kind) or kind
    if is_typeddict(shape):
        yield shape
        for field in get_type_hints(shape, include_extras=True).values():
            yield from _shapes(field)
    for part in get_args(kind):
        yield from _shapes(part)


def _describe(made: dict[str, Any], shape: type) -> None:
    """Adds the docstrings below the fields, and puts the fields in their order."""
    docstrings = _docstrings(shape)
    properties = made["properties"]
    made["properties"] = {
        name: properties[name] | ({"description": docstrings[name]} if name in docstrings else {})
        for name in get_type_hints(shape)
    }


def _docstrings(shape: type) -> dict[str, str]:
    """The docstrings of the fields by name, with those of the bases."""
    docstrings: dict[str, str] = {}
    for base in get_original_bases(shape):
        if is_typeddict(base):
            docstrings |= _docstrings(base)
    try:
        source = inspect.getsource(shape)
    except OSError:  # A type that a call made has no class statement.
        return docstrings
    [declared] = ast.parse(textwrap.dedent(source)).body
    assert isinstance(declared, ast.ClassDef)
    for field, below in pairwise(declared.body):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(sentence))),
            ):
                docstrings[name] = inspect.cleandoc(sentence)
    return docstrings


# ------------------------------------------------------------------------------------ the tables


def _tables() -> dict[str, Any]:
    """An object with a list of rows for each table."""
    return {
        "$schema": DIALECT,
        "$defs": {table.name: _rows(table) for table in TABLES.values()},
        "title": identifier(TABLES_OF_A_SEED),
        "description": "The tables of a seed, by name: a list of rows each. In a Run's folder each is "
        "a Parquet file with these columns.",
        "type": "object",
        "properties": {
            name: {"type": "array", "items": {"$ref": f"#/$defs/{name}"}} for name in TABLES
        },
        "additionalProperties": False,
    }


def _rows(table: TableSchema) -> dict[str, Any]:
    return {
        "title": table.name,
        "description": table.about,
        "type": "object",
        "properties": {column.name: _cell(column) for column in table.columns},
        "required": [column.name for column in table.columns],
        "additionalProperties": False,
    }


def _cell(column: ColumnSchema) -> dict[str, Any]:
    kinds = {"integer": "integer", "real": "number"}
    kind = kinds.get(column.kind, "string")
    null = f"; null: {column.null}" if column.null else ""
    return {
        "description": column.meaning + null,
        "type": [kind, "null"] if column.null else kind,
    }
