"""Plain values against the shapes that types declare: the one reader of JSON from elsewhere.

A shape is a dataclass, a TypedDict, a list, a mapping, a scalar, or one of these or None.
`Within` bounds a number, `Chosen` says which of several shapes a value is to have; both are said
with `Annotated`. What does not fit is one sentence that names the place: "links.0.delay_ns: not a
whole number".
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from typing_extensions import is_typeddict

T = TypeVar("T")


@dataclass(frozen=True)
class Within:
    """Of a number: both ends belong to it."""

    least: float
    most: float


@dataclass(frozen=True)
class Chosen:
    """Of several shapes: the one that a value is to have."""

    choose: Callable[[object], object]


Count: TypeAlias = Annotated[int, Within(0, 2**63 - 1)]
"""What a column of integers holds, and times in ns: whatever is computed of it stays finite."""
Whole: TypeAlias = Annotated[int, Within(1 - 2**63, 2**63 - 1)]
Real: TypeAlias = Annotated[float, Within(-1e18, 1e18)]

_CALLED = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def read(shape: type[T], value: object) -> T:
    """The value in this shape: dataclasses and tuples are made, everything else stays as it is.

    Keys that a shape doesn't name stay in a TypedDict, and are left out of a dataclass.

    Raises:
        ValueError: it does not fit. The sentence begins with the place.
    """
    whole: Any = shape
    try:
        made: T = _reader(whole)(value)
    except _MisfitError as error:
        raise ValueError(": ".join(filter(None, (".".join(error.place), error.why)))) from None
    return made


class _MisfitError(Exception):
    """`place`: from the whole value down to the one that does not fit."""

    def __init__(self, why: str, *place: object) -> None:
        super().__init__(why)
        self.why = why
        self.place = [str(name) for name in place]


_Reader: TypeAlias = Callable[[Any], Any]


@cache
def _reader(shape: Any) -> _Reader:
    kind, parts = get_origin(shape), get_args(shape)
    if shape is Any:
        return lambda value: value
    if kind is Annotated:
        return _marked(parts[0], parts[1:])
    if kind in (Union, types.UnionType):
        (one,) = (_reader(part) for part in parts if part is not types.NoneType)
        return lambda value: None if value is None else one(value)
    if kind is Literal:
        return lambda value: _one_of(parts, value)
    if kind in (list, tuple):
        each = _reader(parts[0])
        return lambda value: kind(_inside(each, enumerate(_is(list, value, "a list"))))
    if kind in (dict, Mapping):
        entry = _reader(parts[1])
        return lambda value: dict(zip(value, _inside(entry, _object(value).items()), strict=True))
    if dataclasses.is_dataclass(shape) or is_typeddict(shape):
        return _fields(shape)
    return lambda value: _scalar(shape, value)


def _marked(shape: Any, marks: tuple[object, ...]) -> _Reader:
    for mark in marks:
        if isinstance(mark, Chosen):
            choose = mark.choose
            return lambda value: _reader(choose(value))(value)
    one, [within] = _reader(shape), [mark for mark in marks if isinstance(mark, Within)]

    def read(value: Any) -> Any:
        made = one(value)
        if not within.least <= made <= within.most:
            raise _MisfitError(f"not between {within.least} and {within.most}")
        return made

    return read


def _fields(shape: Any) -> _Reader:
    known = {name: (_reader(kind), required) for name, kind, required in _declared(shape)}
    make: Callable[..., Any] = shape

    def read(value: Any) -> Any:
        given = _object(value)
        made = {}
        for name, (one, _) in known.items():
            if name in given:
                try:
                    made[name] = one(given[name])
                except _MisfitError as error:
                    raise _MisfitError(error.why, name, *error.place) from None
        for name, (_, required) in known.items():
            if required and name not in given:
                raise _MisfitError("missing", name)
        return given | made if is_typeddict(shape) else make(**made)

    return read


def _declared(shape: Any) -> Iterator[tuple[str, Any, bool]]:
    """Each field: its name, its type, and whether it has to be there."""
    hints = get_type_hints(shape, include_extras=True)
    if is_typeddict(shape):
        for name, kind in hints.items():
            if get_origin(kind) is NotRequired:
                yield name, get_args(kind)[0], False
            else:
                yield name, kind, name in shape.__required_keys__
        return
    none = dataclasses.MISSING
    for field in dataclasses.fields(shape):
        required = field.default is none and field.default_factory is none
        yield field.name, hints[field.name], required


def _inside(one: _Reader, values: Iterable[tuple[object, Any]]) -> Iterator[Any]:
    for name, value in values:
        try:
            yield one(value)
        except _MisfitError as error:
            raise _MisfitError(error.why, name, *error.place) from None


def _scalar(shape: type, value: Any) -> Any:
    fits = type(value) is shape or (shape is float and type(value) is int)
    if not fits or (type(value) is float and not math.isfinite(value)):
        raise _MisfitError(f"not {_CALLED[shape]}")
    return value


def _one_of(words: tuple[str, ...], value: Any) -> Any:
    if not isinstance(value, str) or value not in words:
        raise _MisfitError("none of " + ", ".join(map(repr, words)))
    return value


def _object(value: Any) -> Any:
    return _is(dict, value, "an object")


def _is(kind: type, value: Any, called: str) -> Any:
    if not isinstance(value, kind):
        raise _MisfitError(f"not {called}")
    return value
