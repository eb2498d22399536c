"""Errors of the command line in two lines: what is wrong, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Collection

import click

from sojourn import extras

_VERBS = {
    **dict.fromkeys(("validate", "lint", "dry-run", "estimate"), "sojourn check SCENARIO"),
    **dict.fromkeys(
        ("plot", "draw", "figures"), "sojourn run SCENARIO --figures png, or sojourn report RUN"
    ),
    **dict.fromkeys(("show", "view", "open", "summary", "stats"), "sojourn report RUN"),
    **dict.fromkeys(("simulate", "sim", "start"), "sojourn run SCENARIO"),
    **dict.fromkeys(("examples", "scenarios", "qdiscs"), "sojourn list"),
    **dict.fromkeys(("convert", "csv"), "sojourn export RUN"),
}
"""Commands of other programs, with sojourn's."""
_OPTIONS = (
    (("-v", "--verbose"), {"-q": "progress shows by itself on a terminal, and -q turns it off"}),
    (("-V",), {"--version": "--version"}),
    (("--output", "--outdir", "--dir"), {"-o": "-o DIR"}),
    (("--format", "--csv"), {"--json": "--json; sojourn export writes CSV"}),
    (("--threads", "--cores", "--workers"), {"-j": "-j N"}),
    (("--repeat", "--runs"), {"--seeds": "--seeds N", "--repeats": "--repeats N"}),
    (
        ("--duration", "--time", "--seconds", "--timeout"),
        {"--length": "--length TIME", "--for": "--for TIME"},
    ),
    (
        ("--rate", "--bandwidth", "--speed"),
        {"--rate": "--rate RATE", "--up": "--up RATE and --down RATE"},
    ),
    (
        ("--upload", "--upstream", "--uplink", "--up-rate"),
        {"--up": "--up", "--phase": "--phase upload"},
    ),
    (
        ("--download", "--downstream", "--downlink", "--down-rate"),
        {"--down": "--down", "--phase": "--phase download"},
    ),
    (("--link-layer", "--layer", "--overhead"), {"--link": "--link LAYER"}),
    (("--sweep",), {"--vary": "--vary KEY=VALUE,..."}),
    (("--discipline", "--queue", "--aqm"), {"--qdisc": "--qdisc WORDS"}),
)
"""Options of other programs and of other verbs. For each, the options that a verb may have instead,
with the text of the hint."""


_MOVED = {
    **dict.fromkeys(
        (f"measure {each}" for each in ("--rpm", "--rpm-interval", "--both", "--insecure", "--ca")),
        "sojourn rpm measure HOST",
    ),
    **dict.fromkeys(
        (
            f"serve {each}"
            for each in ("--rpm", "--cert", "--key", "--name", "--cert-out", "--connections")
        ),
        "sojourn rpm serve",
    ),
    "agree --replay": "sojourn replay",
}
"""Options of earlier versions that are now commands."""


_CLEANERS = ("netns", "kernel clean")
"""Commands of earlier versions that removed part of what `clean` removes."""


def words(error: click.ClickException) -> str:
    """`error: ...` and `hint: ...`."""
    context = getattr(error, "ctx", None)
    help_ = f"{context.command_path} --help" if context else "sojourn --help"
    message, hint = _message(error, context)
    return f"error: {message}\nhint: {hint or help_}"


def _message(error: click.ClickException, context: click.Context | None) -> tuple[str, str]:
    if isinstance(error, click.NoSuchOption):
        old = f"{context.command.name} {error.option_name}" if context else ""
        if old in _MOVED:
            return f"`sojourn {old}` is a command of its own now", _MOVED[old]
        return f"there is no option {error.option_name}", _option(error, context)
    if isinstance(error, click.exceptions.NoSuchCommand):
        above = context.command_path.partition(" ")[2] if context else ""
        old = f"{above} {error.command_name}".strip()
        if old in _CLEANERS:
            return f"`sojourn {old}` is `sojourn clean` now", "sojourn clean"
        extra = None if above else extras.brings(error.command_name)
        if extra is not None:
            return (
                f"`sojourn {error.command_name}` is a command of sojourn-{extra}, which is not installed",
                extras.install(extra),
            )
        known = error.possibilities or []
        meant = _VERBS.get(error.command_name) or (f"did you mean {known[0]}?" if known else "")
        return f"there is no command {error.command_name!r}", meant
    if isinstance(error, click.MissingParameter):
        return _plain(error.format_message()), ""
    if isinstance(error, click.BadParameter):
        name = error.param_hint or (error.param and error.param.get_error_hint(context))
        place = str(name).replace("'", "") if name else ""
        if number := _number(error):
            problem, hint = number
            return f"{place}: {problem}", hint
        # click's message has the choices of an argument.
        return (f"{place}: " if place and place[0] != "[" else "") + _plain(error.message), _choice(
            error, context
        )
    return _plain(error.format_message()), _extra(error, context)


def _extra(error: click.ClickException, context: click.Context | None) -> str:
    """The hint for an extra word that belongs to the option before it."""
    found = re.match(r"Got unexpected extra arguments? \((\S+?)[ )]", error.format_message())
    if found is None or context is None or context.command.name != "tune":
        return ""
    return f"--up and --down are flags without a value: --rate {found[1]} tries this rate"


def _choice(error: click.BadParameter, context: click.Context | None) -> str:
    """The nearest valid value of an option or argument."""
    given = re.match(r"'(.*?)' is not one of", error.message)
    if given is None or error.param is None or not isinstance(error.param.type, click.Choice):
        return ""
    extra = extras.brings(given[1], extras.LISTS)
    if extra and context is not None and context.command.name == "list":
        return f"it is a list of sojourn-{extra}: {extras.install(extra)}"
    import difflib

    near = difflib.get_close_matches(
        given[1], [str(each) for each in error.param.type.choices], n=1
    )
    return f"did you mean {near[0]}?" if near else ""


def _plain(message: str) -> str:
    """A message in sojourn's form: a lower-case first letter, no full stop at the end."""
    first = message.split(" ", 1)[0]
    small = (
        message[:1].lower() + message[1:] if first.isalpha() and not first.isupper() else message
    )
    return small.rstrip(".")


def _option(error: click.NoSuchOption, context: click.Context | None) -> str:
    name = error.option_name
    if context is None:
        return ""
    own = {each for parameter in context.command.params for each in parameter.opts}
    known = next((instead for names, instead in _OPTIONS if name in names), {})
    meant = next((words for each, words in known.items() if each in own), "")
    # For a known option the nearest spelling would be a wrong guess.
    near = f"did you mean {error.possibilities[0]}?" if error.possibilities and not known else ""
    return meant or _key(name, own) or _word(name, context, own) or near


def _key(option: str, own: Collection[str]) -> str:
    """The hint for an option that is a key of the scenario, if the verb has --set."""
    if "--set" not in own:
        return ""
    from sojourn.scenario import dotted_key

    dotted = dotted_key(option.lstrip("-"))
    if not dotted:
        return ""
    more = "; sojourn compare tries several" if dotted.endswith("qdisc") else ""
    return f"it is a key of the scenario: --set {dotted}=VALUE{more}"


def _word(option: str, context: click.Context, own: Collection[str]) -> str:
    """The hint for an option that is a parameter of a queue discipline, if the verb takes those."""
    takes = any("QDISC" in (parameter.metavar or "") for parameter in context.command.params)
    if not takes and "--qdisc" not in own and "--set" not in own:
        return ""
    from sojourn.scenario.qdisc import QDISCS

    for kind in sorted(QDISCS, key=lambda kind: kind not in ("codel", "fq_codel", "cake")):
        record = QDISCS[kind]
        words = dict(record.words(record.variants[0]))
        if (word := option.lstrip("-")) in words:
            written = " ".join(filter(None, (kind, word, words[word])))
            given = "" if takes else "--qdisc " if "--qdisc" in own else "--set bottleneck.qdisc="
            return f'it is a parameter of a queue discipline: {given}"{written}"'
    return ""


def _number(error: click.BadParameter) -> tuple[str, str] | None:
    """The error and the hint for a value that should be a whole number."""
    given = re.match(r"('.*') is not a valid integer", error.message)
    if given is None:
        return None
    kind = error.param.type if error.param else None
    low, high = (getattr(kind, end, None) for end in ("min", "max"))
    bounds = "" if low is None else f" from {low} to {high}" if high else f" of at least {low}"
    return f"{given[1]} is not a whole number", f"write one{bounds}"
