"""Checks plain values from JSON and TOML of other origin against declared shapes, by msgspec.

A shape is a dataclass, a TypedDict, a list, a mapping, a scalar, or one of these or None. An error
is one sentence that begins with the place: "links.0.delay_ns: expected `int`, got `str`".

msgspec lacks three things. A union can have only one TypedDict: `one_of` stands for several in a
schema, and the caller chooses. An error in a mapping does not name the key: `_key` finds it. Bounds
have 64 bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

T = TypeVar("T")

Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""An integer of a table's column, or a time in ns. Its bounds keep computations with such values
finite."""
Whole: TypeAlias = Annotated[int, Meta(ge=1 - 2**63, le=2**63 - 1)]
Real: TypeAlias = Annotated[float, Meta(ge=-1e18, le=1e18)]

_PLACE = re.compile(r" - at `\$(?P<place>[^`]*)`$")
_STEP = re.compile(r"\.?(\w+)|\[(\d+|\.\.\.)\]")


def one_of(*shapes: type) -> Any:
    """An object of one of these TypedDicts, for a schema; `read` accepts any object for it."""
    refs = [{"$ref": f"#/$defs/{shape.__name__}"} for shape in shapes]
    return Annotated[
        dict[str, Any], Meta(extra_json_schema={"anyOf": refs}, extra={"shapes": shapes})
    ]


def read(shape: type[T], value: object, place: str = "") -> T:
    """Converts the value to this shape, with its dataclasses and tuples. Keys that the shape
    doesn't name are left out. `place`: the place of the value, for the error.

    Raises:
        ValueError: it does not fit.
    """
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        why = str(error)
        raise ValueError(_sentence(shape, value, why, place)) from None


def _sentence(shape: Any, value: object, why: str, place: str) -> str:
    found = _PLACE.search(why)
    steps = _STEP.findall(found["place"]) if found else []
    named = ".".join((*([place] if place else []), *_names(shape, value, why, steps)))
    what = _PLACE.sub("", why)
    return f"{named}: {what[0].lower()}{what[1:]}" if named else what


def _names(shape: Any, whole: object, why: str, steps: list[tuple[str, str]]) -> Iterator[str]:
    """The steps from the whole value to the place of the error."""
    here: Any = whole
    for field, index in steps:
        if index == "...":
            name: Any = _key(shape, whole, here, why)
        else:
            name = field or int(index)
        yield str(name)
        here = here[name]


def _key(shape: Any, whole: object, mapping: dict[str, Any], why: str) -> str:
    """The key of the mapping's value that does not fit. The search halves the mapping each time,
    because each try reads all values that are left."""
    kept = dict(mapping)
    rest = list(kept.items())
    while len(rest) > 1:
        half = rest[: len(rest) // 2]
        mapping.clear()
        mapping.update(half)
        rest = half if _fails(shape, whole, why) else rest[len(half) :]
    mapping.clear()
    mapping.update(kept)
    return rest[0][0]


def _fails(shape: Any, whole: object, why: str) -> bool:
    try:
        msgspec.convert(whole, shape)
    except msgspec.ValidationError as error:
        return str(error) == why
    return False
