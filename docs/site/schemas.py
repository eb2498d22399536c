"""A page for each JSON Schema, with every object and its keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sojourn import schemas

FOLDER = "docs/schemas"


def pages() -> dict[str, str]:
    wholes = {name: schemas.make(name) for name in schemas.names()}
    made = {f"{FOLDER}/{name}.md": "\n".join(_page(name, one)) for name, one in wholes.items()}
    return {f"{FOLDER}/index.md": "\n".join(_index(wholes)), **made}


def _index(wholes: dict[str, Any]) -> Iterator[str]:
    yield "# JSON Schemas, object by object\n"
    yield (
        "A page for each shape of `--json`, with every object in it. [The schemas of --json](../json.md) has the "
        "first level of all on one page. `sojourn list schemas run` prints that of `sojourn run --json` (JSON Schema 2020-12).\n"
    )
    yield "| schema | |"
    yield "|---|---|"
    for name, whole in wholes.items():
        about = " ".join(str(whole.get("description", "")).split())
        yield f"| [{name}]({name}.md) | {_cell(about)} |"
    yield "\n```{toctree}\n:hidden:\n"
    yield from wholes
    yield "```"


def _page(name: str, whole: dict[str, Any]) -> Iterator[str]:
    yield f"# {name}\n"
    yield from _object(whole)
    for inner, shape in sorted(whole.get("$defs", {}).items()):
        yield f"## {_called(inner)}\n"
        yield from _object(shape)


def _object(shape: dict[str, Any]) -> Iterator[str]:
    if about := shape.get("description"):
        yield " ".join(str(about).split()) + "\n"
    if "properties" not in shape:
        yield f"Is {_type(shape)}.\n"
        return
    required = set(shape.get("required", ()))
    yield "| key | type | always | |"
    yield "|---|---|---|---|"
    for key, value in shape["properties"].items():
        always = "yes" if key in required else ""
        yield f"| `{key}` | {_type(value)} | {always} | {_cell(value.get('description', ''))} |"
    yield ""


def _type(value: dict[str, Any]) -> str:
    if "$ref" in value:
        name = _called(value["$ref"].rsplit("/", 1)[1])
        return f"[{name}](#{name.lower().replace(',', '').replace(' ', '-')})"
    if "anyOf" in value:
        return " or ".join(map(_type, value["anyOf"]))
    if "const" in value:
        return f"`{json.dumps(value['const'])}`"
    if "enum" in value:
        return ", ".join(f"`{json.dumps(each)}`" for each in value["enum"])
    kind = value.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {_type(value.get('items', {}))}"
    if isinstance(more := value.get("additionalProperties"), dict):
        return f"object of {_type(more)}"
    return str(kind)


def _called(name: str) -> str:
    """The name of an inner shape. A generic shape has numbers, or means over the seeds."""
    plain, _, of = name.partition("_")
    return f"{plain}, over seeds" if "MeanAndInterval" in of else plain


def _cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")
