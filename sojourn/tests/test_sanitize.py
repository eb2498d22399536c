"""Text from outside is shown and stored without control characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.sanitize import is_plain, plain, plain_values


@pytest.mark.parametrize(
    "control", ["\x00", "\x07", "\x1b", "\x7f", "\x9b", "\u202e", "\u2066", "\ud800", "\n", "\r"]
)
def test_a_control_character_is_shown_as_one_that_was_there(control: str) -> None:
    assert plain(f"a{control}b") == "a\ufffdb"
    assert not is_plain(f"a{control}b")


def test_what_people_write_stays() -> None:
    words = "fq_codel: 5 ms, «Müller», 日本, 👩‍🔬, a\u00a0b, =1+1"
    assert plain(words) == words
    assert is_plain(words)


def test_lines_and_tabs_stay_where_text_has_lines() -> None:
    assert plain("a\n\tb\x1b[2J\r", lines=True) == "a\n\tb\ufffd[2J\ufffd"


def test_plain_values_are_so_at_any_depth() -> None:
    assert plain_values({"a\x1b": [{"b": "\x07"}, 1, None, 2.5, True]}) == {
        "a\ufffd": [{"b": "\ufffd"}, 1, None, 2.5, True]
    }


@given(st.text())
def test_what_was_made_plain_is_and_stays_so(words: str) -> None:
    assert is_plain(plain(words))
    assert plain(plain(words)) == plain(words)
    assert len(plain(words)) == len(words)
