"""`sojourn shape`: prints the commands of a shaper for a live interface, or applies them and can
restore the former state."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import click

from sojourn.cli import options, text, work
from sojourn.errors import UserError

if TYPE_CHECKING:
    from sojourn.linux.operations import ShapePlan, WantedShape
    from sojourn_live.outputs import ShapedInterface, ShapeState
    from sojourn_live.shape.journal import ShaperEntry

WITHIN = "60s"


@dataclass(frozen=True)
class ApplyOptions:
    """Whether to apply the shaper, and when to roll it back."""

    act: bool = options.option(
        "--apply",
        is_flag=True,
        help="Apply the shaper. Without this the commands are printed, and nothing is changed.",
    )
    confirm_within: str = options.option(
        "--confirm-within",
        default=WITHIN,
        show_default=True,
        metavar="TIME",
        help="With --apply: restore the former state after TIME unless you confirm; 0s: never.",
    )


@click.command()
@click.argument("interface", metavar="IFACE")
@options.block(
    options.RateOptions,
    up="Rate that IFACE may send at: 18mbit. About 90 % of the line's rate.",
    down="Rate that IFACE may receive at: 90mbit. Needs an IFB.",
)
@options.block(options.ShaperOptions)
@options.block(ApplyOptions)
@click.option(
    "--for",
    "router",
    type=click.Choice(["tc", "sqm", "mikrotik"]),
    default="tc",
    show_default=True,
    help="Print the configuration for tc on this host, or for another router: OpenWrt's SQM, MikroTik's RouterOS 7. IFACE is then an interface of that router.",
)
@click.option("--confirm", is_flag=True, help="Keep the applied shaper.")
@click.option("--undo", is_flag=True, help="Restore the former state of IFACE.")
@click.option("--status", "status_", is_flag=True, help="Show whether IFACE is shaped.")
@options.one(options.TalkOptions, "as_json")
def shape(
    interface: str,
    rate: options.RateOptions,
    shaper: options.ShaperOptions,
    apply: ApplyOptions,
    router: str,
    confirm: bool,
    undo: bool,
    status_: bool,
    as_json: bool,
) -> None:
    """Cure bufferbloat: put a shaper on a live interface.

    The shaper is a little slower than the line, so the queue builds up here, where it is kept
    short.

    Prints the exact commands of ip and tc; --apply runs them, as root, and rolls them back unless
    you confirm in time.

    \b
    sojourn shape eth0 --up 18mbit --down 90mbit --link docsis
    sudo sojourn shape eth0 --up 18mbit --down 90mbit --link docsis --apply
    sudo sojourn shape eth0 --confirm        or wait: it is rolled back
    sudo sojourn shape eth0 --undo
    """
    asked = [
        name
        for name, on in (
            ("--apply", apply.act),
            ("--confirm", confirm),
            ("--undo", undo),
            ("--status", status_),
        )
        if on
    ]
    if len(asked) > 1:
        raise click.UsageError(f"{' and '.join(asked)} can't be combined")
    if asked and asked != ["--apply"] and (rate.up or rate.down or shaper.link):
        raise click.UsageError(f"{asked[0]} takes no rate and no link")
    if router != "tc":
        if asked:
            raise click.UsageError(f"{asked[0]} acts on this host: leave out --for {router}")
        _print_for(router, interface, wanted_of(shaper, rate), as_json)
        return
    from sojourn_live.shape import apply as applying

    if not status_:
        _note_unfinished(interface)
    if status_:
        _status(interface, as_json)
    elif confirm:
        entry = applying.confirm(interface)
        _show(entry, as_json, f"{interface}: kept, {_described(entry)}")
    elif undo:
        entry, differs = applying.undo(interface)
        words = (
            f"{interface}: restored, but {differs}" if differs else f"{interface}: as it was before"
        )
        _show(replace(entry, why=differs), as_json, differs if applying.absent(entry) else words)
    else:
        wanted = wanted_of(shaper, rate)
        if apply.act:
            apply_shaper(interface, wanted, apply.confirm_within, as_json)
        else:
            _print(interface, wanted, as_json)


def wanted_of(
    shaper: options.ShaperOptions, rate: options.RateOptions | None = None
) -> WantedShape:
    """The wanted shaper from the options. If `rate` is None, it has no rates yet."""
    from sojourn.linux.operations import WantedShape

    if not shaper.qdisc.strip():
        raise click.BadParameter("name a queue discipline", param_hint="--qdisc")
    ways = (None, None) if rate is None else (rate.up, rate.down)
    return WantedShape(*ways, shaper.qdisc, shaper.link)


def _print(interface: str, wanted: WantedShape, as_json: bool) -> None:
    from sojourn.linux.operations import plan
    from sojourn_live.shape import apply as applying

    found, former = applying.look(interface)
    planned = plan(wanted, found, former)
    _notes(planned)
    if as_json:
        shaped = _planned(interface, wanted, planned.commands, list(planned.notes))
        work.show(text.as_json(shaped, "shape"))
        return
    for command in planned.commands:
        work.show(command)
    work.say("nothing was changed: --apply runs these commands, and rolls back unless you confirm")


def _print_for(router: str, interface: str, wanted: WantedShape, as_json: bool) -> None:
    """Prints the configuration of another router."""
    from sojourn import advice

    if wanted.up_bps is None and wanted.down_bps is None:
        raise click.UsageError("give --up or --down, or both")
    writers = {"sqm": advice.sqm, "mikrotik": advice.mikrotik}
    lines = writers[router](wanted, interface)
    if lines is None:
        raise UserError(
            f"{router} has no {wanted.qdisc}",
            "--qdisc cake or fq_codel; or --for tc on a Linux router",
        )
    if as_json:
        work.show(text.as_json(_planned(interface, wanted, lines, []), "shape"))
        return
    work.show("\n".join(lines))


def apply_shaper(interface: str, wanted: WantedShape, confirm_within: str, as_json: bool) -> None:
    """Applies the shaper, and prints its state and the command that keeps or undoes it."""
    from sojourn.units import parse_duration
    from sojourn_live.shape import apply as applying

    within_s = parse_duration(confirm_within, what="a time", example="60 s") / 1e9
    if within_s and not 1 <= within_s <= 86_400:
        raise UserError(
            f"--confirm-within {confirm_within} is not from 1 s to a day",
            "write 60s; 0s: never roll back",
        )
    entry, planned = applying.apply(interface, wanted, within_s)
    _notes(planned)
    _show(entry, as_json, f"{interface}: shaped, {_described(entry)}")
    if within_s:
        work.say(
            f"the former state is restored in {within_s:g} s unless you run: sojourn shape {shlex.quote(interface)} --confirm"
        )
    else:
        work.say(f"to restore the former state: sojourn shape {shlex.quote(interface)} --undo")


def _status(interface: str, as_json: bool) -> None:
    from sojourn_live.shape import apply as applying
    from sojourn_live.shape import journal

    entry = journal.load(interface)
    if entry is None:
        applying.look(interface)
        work.show(
            text.as_json(_nothing(interface, "not shaped"), "shape")
            if as_json
            else f"{interface}: not shaped by sojourn"
        )
        return
    gone = applying.absent(entry)
    _show(replace(entry, why=gone or entry.why), as_json, gone or f"{interface}: {_state(entry)}")
    if not as_json and not gone:
        for command in entry.commands:
            work.show(f"  {command}")


def _state(entry: ShaperEntry) -> str:
    from sojourn_live.shape import journal

    what = _described(entry)
    if entry.state == "rolled back":
        return f"rolled back ({what}): {entry.why}"
    since = time.strftime("%H:%M", time.localtime(entry.began_s))
    if not entry.open:
        return f"shaped since {since}, {what}"
    if not entry.watched:
        return f"shaped since {since}, {what}; not confirmed, and the watchdog that would roll it back has ended: --undo or --confirm"
    left = (entry.deadline_s or journal.now()) - journal.now()
    return f"shaped since {since}, {what}; rolled back in {max(0.0, left):.0f} s unless confirmed"


def _described(entry: ShaperEntry) -> str:
    from sojourn.linux.operations import described

    return described(entry.wanted)


def _show(entry: ShaperEntry, as_json: bool, words: str) -> None:
    if not as_json:
        work.show(words)
        return
    shaped: ShapedInterface = {
        **_nothing(entry.interface, cast("ShapeState", entry.state)),
        "up_bps": entry.wanted["up_bps"],
        "down_bps": entry.wanted["down_bps"],
        "qdisc": entry.wanted["qdisc"],
        "link": entry.wanted["link"],
        "commands": list(entry.commands),
        "watched": entry.watched,
        "why": entry.why,
    }
    work.show(text.as_json(shaped, "shape"))


def _nothing(interface: str, state: ShapeState) -> ShapedInterface:
    """An interface's entry under --json with its state only."""
    return {
        "interface": interface,
        "state": state,
        "up_bps": None,
        "down_bps": None,
        "qdisc": None,
        "link": None,
        "commands": [],
        "notes": [],
        "watched": False,
        "why": "",
    }


def _planned(
    interface: str, wanted: WantedShape, commands: list[str], notes: list[str]
) -> ShapedInterface:
    return {
        **_nothing(interface, "planned"),
        "up_bps": wanted.up_bps,
        "down_bps": wanted.down_bps,
        "qdisc": wanted.qdisc,
        "link": wanted.link.text if wanted.link else None,
        "commands": commands,
        "notes": notes,
    }


def _notes(planned: ShapePlan) -> None:
    for note in planned.notes:
        work.say(f"note: {note}")


def _note_unfinished(interface: str) -> None:
    """Prints a note for each unconfirmed shaper, on this interface or another, whose watchdog has
    ended, and for a rollback on this interface."""
    from sojourn_live.shape import journal

    for name in (interface, *journal.others(interface)):
        try:
            entry = journal.load(name)
        except UserError:
            continue
        if (entry is not None and entry.open and not entry.watched) or (
            entry is not None and entry.state == "rolled back" and name == interface
        ):
            work.say(f"note: {name}: {_state(entry)}")
