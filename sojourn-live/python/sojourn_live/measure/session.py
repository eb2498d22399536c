"""One measuring session with a server of ours.

crates/live does all of the measuring. This file passes the plan to it and returns the result:
tables in the form that `records.frame` takes, and facts. docs/measure.md describes the protocol and
each number.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from sojourn import linux_only as linux_only
from sojourn_live import _live
from sojourn_live.measure.planned import (
    MS,
    LiveError,
    PlannedPhase,
    ProbeTarget,
    S,
    Session,
    SessionPlan,
)

if TYPE_CHECKING:
    from sojourn.arrays import Columns

__all__ = [
    "MS",
    "LiveError",
    "PlannedPhase",
    "ProbeTarget",
    "S",
    "Session",
    "SessionKeeper",
    "SessionPlan",
    "SessionProgress",
    "endpoint",
    "measure",
]

SessionProgress = Callable[[int, int, str], bool]
"""Called about ten times a second with the time reached, the expected duration of the session (both
ns) and the phase's name ("" between phases). Returning False ends the session as Ctrl-C does."""
SessionKeeper = Callable[[Session], None]
"""Called after each phase, and now and then in a long one, with the session so far. Its facts mark
it as unfinished."""


def endpoint(text: str) -> tuple[str, int | None]:
    """Host and port of HOST, HOST:PORT, an IPv6 address, or [ADDRESS]:PORT. The port is None if
    none is given.

    Raises:
        LiveError: the text has another form.
    """
    scheme, is_url, rest = text.partition("://")
    if is_url:
        host = rest.partition("/")[0]
        raise LiveError(
            f"{text!r} is a URL, not a host",
            f"write {host or 'HOST'}, if `sojourn serve` runs there; sojourn rpm measure takes a URL"
            if scheme in ("http", "https")
            else f"write {host or 'HOST'}",
        )
    try:
        return _live.endpoint(text)
    except _live.MeasureError as error:
        raise LiveError(*error.args) from None


def measure(
    plan: SessionPlan, reached: SessionProgress | None = None, keep: SessionKeeper | None = None
) -> Session:
    """Measures. It takes as long as its phases and a little more.

    If the server disappears, or after Ctrl-C, the Session has the data so far, and its facts report
    how it ended.

    Raises:
        LiveError: nothing could be measured: no such host or interface, no server there, or the
            server refused (the error has its reason).
    """

    def kept(tables: dict[str, Columns], facts: str) -> None:
        assert keep is not None, "this callback is passed only with `keep`"
        keep(Session(tables, json.loads(facts)))

    try:
        tables, facts = _live.measure(plan.to_json(), reached, keep and kept)
    except _live.MeasureError as error:
        problem, hint = error.args
        raise LiveError(problem, hint) from None
    return Session(tables, json.loads(facts))
