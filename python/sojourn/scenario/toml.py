"""Plain values as TOML text: the canonical form that a Run keeps.

Tables come after plain keys, lists of tables as `[[flow]]`, small tables inside them inline; long lists take a line a row.
"""

import re
from collections.abc import Mapping
from typing import Any


def to_toml(document: Mapping[str, Any]) -> str:
    """The document as text; reading it gives the same values."""
    lines: list[str] = []
    _table(document, (), lines)
    return "\n".join(lines).strip("\n") + "\n"


def _table(table: Mapping[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
    nested = {key: value for key, value in table.items() if _is_table(value) or _is_tables(value)}
    for key, value in table.items():
        if key not in nested:
            lines.append(f"{_key(key)} = {_value(value)}")
    for key, value in nested.items():
        below = (*path, key)
        header = ".".join(_key(part) for part in below)
        if _is_table(value):
            lines += ["", f"[{header}]"]
            _table(value, below, lines)
        else:
            for item in value:
                lines += ["", f"[[{header}]]"]
                lines += [f"{_key(name)} = {_value(inner)}" for name, inner in item.items()]


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_tables(value: object) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) > 0
        and all(isinstance(item, Mapping) for item in value)
    )


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _string(key)


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            # TOML wants a point or an exponent with digits on both sides; repr gives that, but for 1e+16's sign.
            return repr(value)
        case str():
            return _string(value)
        case Mapping():
            return "{ " + ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in value.items()) + " }"
        case list() | tuple() if len(value) > 4 and any(isinstance(item, list | tuple) for item in value):
            return "[\n" + "".join(f"    {_value(item)},\n" for item in value) + "]"
        case list() | tuple():
            return "[" + ", ".join(_value(item) for item in value) + "]"
    raise TypeError(f"TOML has no {type(value).__name__}")


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _string(text: str) -> str:
    def escape(match: re.Match[str]) -> str:
        char = match[0]
        return _ESCAPES.get(char, f"\\u{ord(char):04x}")

    return '"' + re.sub(r'["\\\x00-\x1f\x7f]', escape, text) + '"'
