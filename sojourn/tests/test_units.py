"""Quantities: every accepted form is read exactly. Other forms are refused, and the hint shows an
accepted one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.units import (
    MAX_DURATION,
    MAX_RATE,
    MAX_SIZE,
    UnitError,
    format_duration,
    format_probability,
    format_rate,
    format_size,
    parse_duration,
    parse_probability,
    parse_rate,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("5 ms", 5_000_000),
        ("0.1 ms", 100_000),
        ("1.5s", 1_500_000_000),
        ("3 µs", 3_000),
        ("2 min", 120 * 10**9),
        ("1e3 ns", 1_000),
    ],
)
def test_durations_are_exact_nanoseconds(text: str, ns: int) -> None:
    assert parse_duration(text) == ns


@pytest.mark.parametrize(
    ("text", "bps"),
    [("20 Mbit/s", 20_000_000), ("0.3 kbit/s", 300), ("1 Gbit/s", 10**9), ("10 Tbit/s", MAX_RATE)],
)
def test_rates_are_decimal_bits_a_second(text: str, bps: int) -> None:
    assert parse_rate(text) == bps


@pytest.mark.parametrize(
    ("text", "size"), [("1500 B", 1500), ("50 kB", 50_000), ("5 MiB", 5 * 2**20), ("1 GB", 10**9)]
)
def test_sizes_are_decimal_unless_they_say_binary(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("20 Mbps", '"20 Mbit/s"'),
        ("20 mbit/s", '"20 Mbit/s"'),
        ("20 Mbit", '"20 Mbit/s"'),
        ("2 MB/s", '"16 Mbit/s"'),
        ("20", '"20 Mbit/s"'),
        (20, '"20 Mbit/s"'),
        ("1,5 Mbit/s", '"1.5 Mbit/s"'),
    ],
)
def test_a_rate_in_another_notation_is_refused_with_the_right_one(value: object, hint: str) -> None:
    with pytest.raises(UnitError) as refused:
        parse_rate(value)
    assert hint in refused.value.hint


@pytest.mark.parametrize(
    "value",
    [
        "",
        "ms",
        "-5 ms",
        "nan s",
        "inf",
        "5",
        5,
        5.0,
        True,
        None,
        [],
        "5 parsec",
        "1e999 s",
        "1e99 s",
        "0.1 ns",
        "20 h h",
        "٥ s",
    ],
)
def test_an_invalid_duration_is_refused(value: object) -> None:
    with pytest.raises(UnitError):
        parse_duration(value)


def test_absurd_values_are_refused() -> None:
    for read, text in (
        (parse_duration, "100000 h"),
        (parse_rate, "11 Tbit/s"),
        (parse_size, "1001 TB"),
        (parse_rate, "0 bit/s"),
    ):
        with pytest.raises(UnitError):
            read(text)


@pytest.mark.parametrize(
    ("value", "fraction"), [("0.1 %", 0.001), ("100%", 1.0), ("0.02", 0.02), (0.5, 0.5), (0, 0.0)]
)
def test_a_probability_is_a_percentage_or_a_fraction(value: object, fraction: float) -> None:
    assert parse_probability(value) == fraction


def test_the_least_and_the_most_are_allowed() -> None:
    assert parse_duration("5 ms", most=5_000_000) == 5_000_000
    assert [parse_size(text, least=10, most=20) for text in ("10 B", "20 B")] == [10, 20]
    for beyond in ("9 B", "21 B"):
        with pytest.raises(UnitError):
            parse_size(beyond, least=10, most=20)
    with pytest.raises(UnitError, match="too long"):
        parse_duration("5.000001 ms", most=5_000_000)


def test_all_digits_that_a_float_can_print_are_read() -> None:
    assert parse_duration("100000000000000000 ns") == 10**17
    assert parse_duration("1.000000000000000000000000 ms") == 1_000_000
    assert parse_duration("5e-003 s") == 5_000_000


def test_the_shorter_notation_is_chosen() -> None:
    assert [format_size(size) for size in (1000, 1999, 2000)] == ["1000 B", "1999 B", "2 kB"]
    assert format_duration(1_000_000) == "1 ms"
    assert format_probability(0.000_001_234_567_8) == "0.0000012345678"


@pytest.mark.parametrize("value", ["101 %", "2", -0.1, float("nan"), float("inf"), True, "p"])
def test_an_invalid_probability_is_refused(value: object) -> None:
    with pytest.raises(UnitError):
        parse_probability(value)


@given(st.integers(0, MAX_DURATION))
def test_a_written_duration_reads_back(ns: int) -> None:
    assert parse_duration(format_duration(ns)) == ns


@given(st.integers(1, MAX_RATE))
def test_a_written_rate_reads_back(bps: int) -> None:
    assert parse_rate(format_rate(bps)) == bps


@given(st.integers(0, MAX_SIZE))
def test_a_written_size_reads_back(size: int) -> None:
    assert parse_size(format_size(size)) == size


@given(st.floats(0, 1))
def test_a_written_probability_reads_back(fraction: float) -> None:
    assert parse_probability(format_probability(fraction)) == fraction


@pytest.mark.parametrize(
    ("value", "problem", "hint"),
    [
        (None, "None is not a time", 'write a time in quotes, like "24 h"'),
        ([1], "[1] is not a time", 'write a time in quotes, like "24 h"'),
        (5, "a time needs a unit; 5 is a bare number", 'write "5 h"'),
        ("7 days", "'days' is not a unit of time", 'write "7 d"'),
        ("2 weks", "'weks' is not a unit of time", "known units: ns, us, ms, s, min, h, d, w"),
        ("522 w", "'522 w' is too long: the most is 315360000 s", ""),
        ("0 d", "a time of zero", 'write a time above zero, like "24 h"'),
    ],
)
def test_an_invalid_span_of_days_is_refused_with_an_error(
    value: object, problem: str, hint: str
) -> None:
    with pytest.raises(UnitError) as refused:
        parse_duration(value, what="a time", example="24 h", zero=False, days=True)
    assert refused.value.problem == problem
    assert refused.value.hint.endswith(hint)


def test_days_and_weeks_are_for_spans_of_a_calendar() -> None:
    assert (
        parse_duration("7 d", days=True) == parse_duration("1 w", days=True) == 168 * 3600 * 10**9
    )
    with pytest.raises(UnitError) as refused:
        parse_duration("7 d")
    assert refused.value.offset == 2


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (parse_duration, parse_rate, parse_size, parse_probability):
        try:
            assert read(text) >= 0
        except UnitError as error:
            assert error.problem


@pytest.mark.parametrize(
    ("ns", "text"),
    [(5_000_000, "5 ms"), (60 * 10**9, "60 s"), (1_500, "1.5 us"), (7, "7 ns"), (0, "0 s")],
)
def test_durations_are_written_in_the_unit_people_would_take(ns: int, text: str) -> None:
    assert format_duration(ns) == text
