"""Text from outside is shown and stored without control characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.sanitize import is_plain, plain, plain_values


@pytest.mark.parametrize(
    "control", ["\x00", "\x07", "\x1b", "\x7f", "\x9b", "\u202e", "\u2066", "\ud800", "\n", "\r"]
)
def test_a_control_character_is_replaced_by_a_visible_one(control: str) -> None:
    assert plain(f"a{control}b") == "a\ufffdb"
    assert not is_plain(f"a{control}b")


def test_ordinary_text_is_unchanged() -> None:
    words = "fq_codel: 5 ms, «Müller», 日本, 👩‍🔬, a\u00a0b, =1+1"
    assert plain(words) == words
    assert is_plain(words)


def test_line_breaks_and_tabs_stay_in_text_of_several_lines() -> None:
    assert plain("a\n\tb\x1b[2J\r", lines=True) == "a\n\tb\ufffd[2J\ufffd"


def test_nested_values_are_sanitized_at_any_depth() -> None:
    assert plain_values({"a\x1b": [{"b": "\x07"}, 1, None, 2.5, True]}) == {
        "a\ufffd": [{"b": "\ufffd"}, 1, None, 2.5, True]
    }


@given(st.text())
def test_sanitizing_twice_changes_nothing(words: str) -> None:
    assert is_plain(plain(words))
    assert plain(plain(words)) == plain(words)
    assert len(plain(words)) == len(words)
