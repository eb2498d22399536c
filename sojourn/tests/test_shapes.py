"""A value that does not fit its declared shape is refused, and the message names the place."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import TypedDict

from sojourn import facts, shapes
from sojourn.shapes import Count, Real


class Part(TypedDict):
    name: str
    sizes: NotRequired[list[Count]]


@dataclass(frozen=True)
class Whole:
    parts: tuple[Part, ...] = ()
    by_name: Mapping[str, Part] = field(default_factory=dict)
    shares: Mapping[str, Mapping[str, Real]] = field(default_factory=dict)
    way: Literal["", "up"] = ""
    count: Count | None = None
    sure: bool = False


def test_a_value_that_fits_is_accepted() -> None:
    part = {"name": "a", "sizes": [1, 2**63 - 1]}
    made = shapes.read(Whole, {"parts": [part], "shares": {"a": {"b": 1}}, "other": 1})
    assert made == Whole(parts=(Part(name="a", sizes=[1, 2**63 - 1]),), shares={"a": {"b": 1.0}})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([], "expected `object`, got `array`"),
        ({"parts": {}}, "parts: expected `array`, got `object`"),
        ({"parts": [{}]}, "parts.0: object missing required field `name`"),
        ({"parts": [{"name": None}]}, "parts.0.name: expected `str`, got `null`"),
        ({"parts": [{"name": "a", "sizes": [1, -1]}]}, "parts.0.sizes.1: expected `int` >= 0"),
        ({"count": True}, "count: expected `int | null`, got `bool`"),
        ({"count": 1.0}, "count: expected `int | null`, got `float`"),
        ({"count": 2**63}, "count: expected `int` <= 9223372036854775807"),
        ({"sure": 1}, "sure: expected `bool`, got `int`"),
        ({"way": "down"}, "way: invalid enum value 'down'"),
        ({"shares": {"a": {"b": 1.0, "c": float("nan")}}}, "shares.a.c: expected `float` >= -1e+18"),
        ({"shares": {"a": {"b": float("inf")}}}, "shares.a.b: expected `float` <= 1e+18"),
        ({"shares": {"a": {"b": 10**400}}}, "shares.a.b: number out of range"),
        ({"way": "x - at `$.count`"}, "way: invalid enum value 'x - at `$.count`'"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_refused_with_its_place(given: Any, says: str) -> None:
    before = repr(given)
    with pytest.raises(ValueError, match=r".") as refused:
        shapes.read(Whole, given)
    assert str(refused.value).lower() == says.lower()
    assert repr(given) == before


@given(st.dictionaries(st.text(), st.booleans(), min_size=1))
def test_the_wrong_entry_of_a_mapping_is_named(fits: dict[str, bool]) -> None:
    """The message names the first wrong entry, not a later error."""
    entries = {name: {"name": "a" if good else 7} for name, good in fits.items()}
    wrong = [name for name, good in fits.items() if not good]
    value = {"by_name": entries, "count": "many"}
    with pytest.raises(ValueError, match=r".") as refused:
        shapes.read(Whole, value)
    place = f"by_name.{wrong[0]}.name" if wrong else "count"
    assert str(refused.value).startswith(f"{place}: expected")
    assert list(entries) == list(fits)


COMMON: Any = {
    "format": 1,
    "outcome": "complete",
    "why": "",
    "notes": [],
    "zero_ns": 0,
    "duration_ns": 1,
    "phases": [],
    "flows": [],
    "links": [],
    "server": {"host": "h", "address": "a", "port": 1, "version": "", "kernel": "", "caps": {}},
    "client": {"version": "", "kernel": "", "address": None, "interface": None, "gateway": None},
}


@pytest.mark.parametrize(
    ("key", "missing"), [("rpm", "rpm.parameters"), ("clock", "clock.offset_ns")]
)
def test_the_keys_of_facts_say_which_shape_they_have_to_have(key: str, missing: str) -> None:
    assert facts.read(COMMON, "facts.1")["server"]["host"] == "h"
    with pytest.raises(ValueError, match=r"facts\.1") as refused:
        facts.read(COMMON | {key: {}}, "facts.1")
    *inner, last = missing.split(".")
    place = ".".join(["facts.1", *inner])
    assert str(refused.value) == f"{place}: object missing required field `{last}`"
