"""What to write where a text is not TOML.

The parser knows what it expected; what the writer meant shows in the line itself: a word without quotes, YAML's colon, JSON's brace.
"""

import re

_KEY = r"[A-Za-z0-9_.\"'-]+"
_YAML = re.compile(rf"\s*(?:-\s+)?({_KEY})\s*:(?:\s+(.*))?")
_ASSIGNED = re.compile(rf"\s*({_KEY})\s*=\s*([^\s#][^#]*)")
_NUMBER = re.compile(r"[+-]?[0-9][0-9_]*(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_BOOLEANS = {**dict.fromkeys(("true", "yes", "on"), "true"), **dict.fromkeys(("false", "no", "off"), "false")}


def explained(message: str, text: str, line: int) -> tuple[str, str]:
    """What is wrong and what to write instead, by the parser's message and the line (from 1) that it is about."""
    wrong, hint = _meant(message, text, line)
    return wrong, hint or _usual(message)


def _usual(message: str) -> str:
    """What to write where nothing tells what was meant."""
    if closing := re.search(r"unclosed .*expected `(.)`", message):
        return f"what opens is closed on the same line, a list on a later one: write {closing[1]}"
    return 'write key = "text", key = 5, [table] or [[flow]]'


def _meant(message: str, text: str, line: int) -> tuple[str, str]:
    lines = text.split("\n")
    here = lines[min(line, len(lines)) - 1].rstrip("\r")
    if "duplicate" in message:
        return message, "a key may stand in a table once; several flows are several [[flow]]"
    if text.lstrip().startswith("{"):
        return message, 'this is TOML, not JSON: write title = "Home", and tables as [bottleneck]'
    if re.match(r"\s*(?:---|- )", text):
        return (
            message,
            'this is TOML, not YAML: write title = "Home", tables as [bottleneck], entries of a list as [[flow]]',
        )
    if yaml := _YAML.fullmatch(here):
        return message, f"this is TOML, not YAML: write {_as_toml(yaml[1], (yaml[2] or '').strip())}"
    if found := _ASSIGNED.fullmatch(here.split(" #")[0].rstrip()):
        return _value(found[1], found[2].strip(), message)
    return message, ""


def _as_toml(key: str, value: str) -> str:
    return f"{key} = {_plain(value)}" if value else f"[{key}]"


def _plain(value: str) -> str:
    """The value as TOML takes it: a number, a list or quoted text as it is, all else in quotes."""
    return value if value[0] in "\"'[" or _NUMBER.fullmatch(value) else _quoted(value)


def _value(key: str, value: str, message: str) -> tuple[str, str]:
    """`value` is what stands behind `key =`, without a comment."""
    # TOML's words are small; a word in small letters would have been read.
    if value.lower() in _BOOLEANS:
        return f"{value} is no value", f"write {key} = {_BOOLEANS[value.lower()]}, in small letters"
    if value.lower() in ("null", "none", "nil", "~"):
        return f"{value} is no value", f"TOML has no null: leave {key} out"
    if "“" in value or "”" in value:
        return message, f"quotes are plain: write {key} = {_quoted(value)}"
    if value[0] == "=":
        return message, f"one = is enough: {key} = {_plain(value.lstrip('= ') or '...')}"
    if value[0] in "\"'" and "string" in message:
        return message, f"the quote that opens is not closed: write {key} = {_quoted(value.strip(value[0]))}"
    unquoted = any(sign in message for sign in ("quoted", "boolean", "float"))
    if value[0] == "[":
        return message, 'each value of a list goes in quotes: ["codel", "fq_codel"]' if unquoted else ""
    if re.fullmatch(r"[0-9]+,[0-9]+.*", value):
        return message, f"decimals take a point: {key} = {_plain(value.replace(',', '.', 1))}"
    if value[0] in "\"'{" or _NUMBER.fullmatch(value):
        return message, ""
    hint = f"text and quantities go in quotes: {key} = {_quoted(value)}"
    return "text without quotes" if unquoted else message, hint


def _quoted(value: str) -> str:
    return '"' + re.sub(r'["“”\\]', "", value) + '"'
