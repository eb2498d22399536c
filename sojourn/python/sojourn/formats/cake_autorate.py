"""cake-autorate's configuration: a scenario of its shaped line at the base rates.

It is a shell's variables (`config.primary.sh`) or a file of UCI (`/etc/config/cake-autorate`), of which
the first enabled section is taken.

cake-autorate moves cake's bandwidth between a minimum and a maximum, around a base. A scenario has one
bandwidth: the base. The notes have the other two.
"""

from __future__ import annotations

import re

from sojourn.formats.content import Content
from sojourn.formats.format import FileFormatError, Format, Yields
from sojourn.formats.texts import (
    GUESSED_DELAY,
    LINK_LAYER,
    PORT,
    TO_RUN,
    Texts,
    line_scenario,
)

_SETTING = re.compile(
    r"^\s*(?:(?:readonly|export|local|declare(?: +-\w+)?) +)?(?P<name>\w+)=(?P<quote>[\"']?)(?P<value>[^\"'#]*?)(?P=quote)\s*(?:#.*)?$"
)
_RATE = re.compile(
    r"^\s*(?:(?:option|readonly|export)\s+)?(?:min|base|max)_dl_shaper_rate_kbps[=\s]", re.M
)
_SECTION = re.compile(r"^\s*config\s+cake_autorate\b")
_OPTION = re.compile(
    r"^\s*option\s+(?P<name>\w+)\s+(?P<quote>[\"']?)(?P<value>[^\"'#]*?)(?P=quote)\s*(?:#.*)?$"
)
WAYS = {"down": "dl", "up": "ul"}


def _is_config(content: Content) -> bool:
    return _RATE.search(content.head) is not None


def _read(content: Content) -> Texts:
    notes: list[str] = []
    settings = _settings(content, notes)
    keys: dict[str, object] = {"delay": GUESSED_DELAY, "link_layer": LINK_LAYER}
    taken = []
    handled = {"enabled"} | {f"adjust_{way}_shaper_rate" for way in WAYS.values()}
    for way, short in WAYS.items():
        names = [f"{end}_{short}_shaper_rate_kbps" for end in ("min", "base", "max")]
        handled |= {*names, f"{short}_if"}
        rates = [_kbps(settings, name) for name in names]
        base = rates[1]
        if base is None:
            raise FileFormatError(f"it has no {names[1]}")
        keys[f"{way}.rate"] = PORT
        keys[f"{way}.qdisc"] = f"cake bandwidth {base}kbit"
        taken.append(
            f"{way}, {settings.get(f'{short}_if', 'unknown')}: cake at its base, {base} kbit/s"
        )
        if settings.get(f"adjust_{short}_shaper_rate", "1") == "0":
            notes.append(f"{way}: cake-autorate does not change this rate.")
        else:
            ends = " to ".join("?" if rate is None else str(rate) for rate in rates[::2])
            notes.append(
                f"{way}: cake-autorate moves the rate from {ends} kbit/s; the scenario stays at the base."
            )
    left = sorted(settings.keys() - handled)
    if left:
        notes.append(f"Settings that were not taken: {', '.join(left)}.")
    notes.append(
        f"The file has no delay, no traffic and no further options of cake. {GUESSED_DELAY} in each direction is a guess, and cake has its default options."
    )
    comment = f"The line of {content.path.name}, of cake-autorate."
    return Texts({".toml": line_scenario(comment, keys, ["down", "up"])}, taken, notes, use=TO_RUN)


def _settings(content: Content, notes: list[str]) -> dict[str, str]:
    sections: list[dict[str, str]] = [{}]
    for line in content.lines:
        if _SECTION.match(line):
            sections.append({})
        elif found := _SETTING.match(line) or _OPTION.match(line):
            sections[-1][found["name"]] = found["value"].strip()
    if len(sections) == 1:
        return sections[0]
    enabled = [each for each in sections[1:] if each.get("enabled", "1") != "0"]
    if not enabled:
        notes.append("No section is enabled in the file: the first one is taken all the same.")
    if len(sections) > 2:
        notes.append(f"The file has {len(sections) - 1} sections: the first enabled one is taken.")
    return (enabled or sections[1:])[0]


def _kbps(settings: dict[str, str], name: str) -> int | None:
    value = settings.get(name)
    if value is None:
        return None
    if not value.isdecimal() or not int(value):
        raise FileFormatError(f"{name} is {value!r}, which is not a rate in kbit/s")
    return int(value)


FORMATS = (
    Format("cake-autorate", "cake-autorate", "config.primary.sh or /etc/config/cake-autorate of cake-autorate", Yields.SCENARIO, _is_config, _read),
)  # fmt: skip
