"""A command line that can't be understood, in our two lines: what is wrong, and what to write
instead."""

from __future__ import annotations

import difflib
import re

import click

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
"""Other programs' words for ours."""
_OPTIONS = {
    **dict.fromkeys(
        ("-v", "--verbose"), "progress shows by itself on a terminal, and -q turns it off"
    ),
    **dict.fromkeys(("-V",), "--version"),
    **dict.fromkeys(("--output", "--outdir", "--dir"), "-o DIR"),
    **dict.fromkeys(("--format", "--csv"), "--json; sojourn export writes CSV"),
    **dict.fromkeys(("--threads", "--cores"), "-j N"),
    **dict.fromkeys(("--repeat", "--runs"), "--seeds N"),
}


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
"""Options of earlier versions that are commands of their own now."""


_CLEANERS = ("netns", "kernel clean")
"""Commands of earlier versions that removed some of what `clean` does."""


def words(error: click.ClickException) -> str:
    """`error: ...` and `hint: ...`."""
    context = getattr(error, "ctx", None)
    help_ = f"{context.command_path} --help" if context else "sojourn --help"
    message, hint = _said(error, context)
    return f"error: {message}\nhint: {hint or help_}"


def _said(error: click.ClickException, context: click.Context | None) -> tuple[str, str]:
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
        known = error.possibilities or []
        meant = _VERBS.get(error.command_name) or (f"did you mean {known[0]}?" if known else "")
        return f"there is no command {error.command_name!r}", meant
    if isinstance(error, click.MissingParameter):
        return _plain(error.format_message()), ""
    if isinstance(error, click.BadParameter):
        name = error.param_hint or (error.param and error.param.get_error_hint(context))
        place = str(name).replace("'", "") if name else ""
        # The choices of an argument are in the message.
        return (f"{place}: " if place and place[0] != "[" else "") + _plain(error.message), _choice(
            error
        )
    return _plain(error.format_message()), ""


def _choice(error: click.BadParameter) -> str:
    """The nearest of the words that an option or argument takes."""
    given = re.match(r"'(.*?)' is not one of", error.message)
    if given is None or error.param is None or not isinstance(error.param.type, click.Choice):
        return ""
    near = difflib.get_close_matches(
        given[1], [str(each) for each in error.param.type.choices], n=1
    )
    return f"did you mean {near[0]}?" if near else ""


def _plain(message: str) -> str:
    """As our own messages are: small at the beginning, no full stop at the end."""
    first = message.split(" ", 1)[0]
    small = (
        message[:1].lower() + message[1:] if first.isalpha() and not first.isupper() else message
    )
    return small.rstrip(".")


def _option(error: click.NoSuchOption, context: click.Context | None) -> str:
    if context is not None and (meant := _key(error.option_name, context)):
        return meant
    if meant := _OPTIONS.get(error.option_name, ""):
        return meant
    return f"did you mean {error.possibilities[0]}?" if error.possibilities else ""


def _key(option: str, context: click.Context) -> str:
    """An option that is a key of the scenario, where --set sets those."""
    if not any("--set" in parameter.opts for parameter in context.command.params):
        return ""
    from sojourn.scenario import dotted_key

    dotted = dotted_key(option.lstrip("-"))
    if not dotted:
        return ""
    more = "; sojourn compare tries several" if dotted.endswith("qdisc") else ""
    return f"it is a key of the scenario: --set {dotted}=VALUE{more}"
