"""Compiles a user-defined discipline or congestion control with numba, for `_core`.

The class's functions become C functions of three pointers (crates/qdisc, own.rs; crates/tcp,
own.rs; crates/python, own.rs). The first is the state, a record of the class's fields. The others
are the packet and the link, or the ACK or congestion signal and nothing. A class is compiled once
in a process, whatever numbers a scenario sets, unless the lengths of its arrays change.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn import _core
from sojourn.errors import UserError, install_extra
from sojourn.own.bases import (
    ANSWERS,
    BASES,
    FUNCTION,
    LINE,
    REAL,
    RNG,
    SILENT,
    TURNS,
    VIEWS,
    WHOLE,
    WHY,
    Call,
    Law,
    Number,
)
from sojourn.own.language import base_of, read
from sojourn.sanitize import plain
from sojourn.scenario.qdisc import Qdisc
from sojourn.scenario.trace import opened

if TYPE_CHECKING:
    import numpy as np

    from sojourn.scenario.realised import Flow, Link, Realised

FAILED = -(1 << 63)
KIND = "own"
MOST_SHOWN = 200
"""Characters of numba's message that are shown."""
_LOCK = threading.Lock()
"""numba compiles for one thread at a time."""


def code_of(links: Sequence[Link]) -> dict[str, _core.OwnCode]:
    """Returns the code of the links' own disciplines (user-written), by its text, for `_core.run`
    and `_core.replay`.

    Raises:
        UserError: the file is not of the language, numba can't compile it, or numba is missing.
    """
    codes: dict[str, _core.OwnCode] = {}
    for link in links:
        if link.qdisc.kind == KIND and link.qdisc.text not in codes:
            with _placed(f"link {link.name!r}: qdisc"):
                codes[link.qdisc.text] = _code(link)
    return codes


def controls_of(flows: Sequence[Flow]) -> dict[str, _core.OwnControlCode]:
    """Returns the code of the flows' own congestion controls (user-written), by its text, for
    `_core.run`.

    Raises:
        UserError: as `code_of`.
    """
    codes: dict[str, _core.OwnControlCode] = {}
    for flow, own in _controls(flows):
        if own.text not in codes:
            with _placed(f"flow {flow!r}: congestion"):
                law, built = _compiled(own, "CongestionControl")
            codes[own.text] = _core.OwnControlCode(
                built.addresses, _state(law, built), built, paces=law.paces
            )
    return codes


@contextmanager
def _placed(place: str) -> Iterator[None]:
    """Adds the place in the scenario to an error."""
    try:
        yield
    except UserError as error:
        error.place = error.place or place
        raise


def given(words: str) -> Qdisc:
    """Parses a discipline; if it is user-defined, its file is read.

    Raises:
        UserError: the text is wrong, or the file can't be read.
    """
    qdisc = Qdisc.parse(words)
    return qdisc.with_("source", _text(words)) if qdisc.kind == KIND else qdisc


def is_control(words: str) -> bool:
    """Whether a user-defined class is a congestion control; otherwise it is a discipline.

    Raises:
        UserError: the file can't be read, or has no such class.
    """
    params = Qdisc.parse(words).params
    file, name = str(params["file"]), str(params["class"])
    return base_of(_text(words), plain(file), name).name == "CongestionControl"


def _text(words: str) -> str:
    """The text of the file that `words` names."""
    file = str(Qdisc.parse(words).params["file"])
    try:
        return opened(file).decode()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text (UTF-8)"
        raise UserError(
            f"can't read {plain(file)}: {why}", "the path is relative to the current folder"
        ) from None


def any_own(realised: Realised) -> bool:
    """Whether a scenario has user-defined code."""
    ours = any(link.qdisc.kind == KIND for link in realised.links)
    return ours or next(_controls(realised.flows), None) is not None


@dataclass(frozen=True)
class _Own:
    """A user-defined class, as a scenario names it."""

    text: str
    file: str
    name: str
    words: str
    source: str | None

    def law(self) -> Law:
        if self.source is None:
            raise UserError(
                f"{self.file}:{self.name}: the file has not been read",
                "name it in a scenario, or with -q",
            )
        return read(self.source, plain(self.file), self.name, self.words)


def _discipline(link: Link) -> _Own:
    params = link.qdisc.params
    words, source = params["words"], params["source"]
    return _Own(
        link.qdisc.text,
        str(params["file"]),
        str(params["class"]),
        words if isinstance(words, str) else "",
        source if isinstance(source, str) else None,
    )


def _controls(flows: Sequence[Flow]) -> Iterator[tuple[str, _Own]]:
    """Each user-defined congestion control, with the name of its flow."""
    for flow in flows:
        if flow.tcp is not None and (own := flow.tcp.own) is not None:
            file, name, words, source = own
            yield flow.name, _Own(flow.tcp.congestion, file, name, words or "", source)


def maker(realised: Realised) -> str:
    """Identifies everything besides its text that decides what user-defined code does: this package
    and numba. Empty if there is no such code."""
    return _maker() if any_own(realised) else ""


def numba_version() -> str:
    """The version of the installed numba.

    Raises:
        UserError: numba is not installed.
    """
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("numba")
    except PackageNotFoundError:
        raise _missing() from None


@functools.cache
def _maker() -> str:
    digest = hashlib.sha256(numba_version().encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return f"own {digest.hexdigest()}"


def _missing() -> UserError:
    return UserError(
        "your own code is compiled by numba, which is not installed", install_extra("own")
    )


def failed(
    error: _core.OwnCodeError, links: Sequence[Link], flows: Sequence[Flow] = ()
) -> UserError:
    """The error for an exception of the engine in code of one of these links or flows, with its
    place."""
    from sojourn.own.checks import RAISED, WHYS

    file, name, method, at_ns, answer, why, line = error.args
    when = f"at {at_ns / 1e9:.9f} s of the run"
    if isinstance(answer, tuple):
        what, to = answer
        problem = f"{file}: {name}.{method} set {what} to {to:.6g} {when}"
        return UserError(problem, _BOUNDS[what])
    if answer is not None:
        problem = (
            f"{file}: {name}.{method} answered {answer} {when}: {_meaningless(method, answer)}"
        )
        return UserError(problem, f"its answer is {ANSWERS[method]}")
    message = _message(links, flows, file, name, line) if why == RAISED else ""
    what = WHYS.get(why, "no answer")
    shown = f"{what}: {message}" if message else what
    return UserError(f"{file}:{line}: {name}.{method} failed {when}: {shown}", "correct the line")


def _message(links: Sequence[Link], flows: Sequence[Flow], file: str, name: str, line: int) -> str:
    """The message of the line's `raise` or `assert`."""
    ours = [_discipline(link) for link in links if link.qdisc.kind == KIND]
    for own in (*ours, *(own for _, own in _controls(flows))):
        if (own.file, own.name) == (file, name):
            return plain(own.law().messages.get(line, ""))
    return ""


_BOUNDS = {
    "cwnd": "cwnd is from 1 segment to 2^31: write max(1.0, ...)",
    "ssthresh": "ssthresh is at least 1 segment, and after a loss at most 2^31",
    "pacing_rate": "a pacing rate is from 0 (none) to 2^53 bit/s",
}


def _meaningless(method: str, answer: int) -> str:
    if method in ("overflow", "choose"):
        return "no such queue, or an empty one"
    return "a time that is not later" if method == "timer" else "not an answer"


def _code(link: Link) -> _core.OwnCode:
    law, built = _compiled(_discipline(link), "Discipline")
    settings = law.settings
    return _core.OwnCode(
        built.addresses,
        _state(law, built),
        built,
        queues=settings["queues"],
        limit=settings["limit"],
        timer=settings["timer_start"],
        bypass=bool(settings["bypass"]),
    )


def _compiled(own: _Own, base: str) -> tuple[Law, _Built]:
    law = own.law()
    if law.base.name != base:
        where = "qdisc" if law.base.name == "Discipline" else "congestion"
        raise UserError(
            f"{own.file}:{own.name} is a {law.base.word}, not a {BASES[base].word}",
            f"write it as {where} = ...",
        )
    with _LOCK:
        return law, _built(_Shape.of(law))


def _state(law: Law, built: _Built) -> bytes:
    """The first state."""
    import numpy as np

    state = np.zeros(1, dtype=built.state)
    for name, value in law.values.items():
        state[name] = value
    return state.tobytes()


@dataclass(frozen=True)
class _Shape:
    """Everything that compiled code depends on."""

    name: str
    file: str
    functions: str
    fields: tuple[tuple[str, str, int], ...]
    """Name, type, and length of an array (0: one number)."""
    methods: tuple[str, ...]
    calls: tuple[Call, ...]
    base: str
    queues: int

    @classmethod
    def of(cls, law: Law) -> _Shape:
        module = ast.Module([function.node for function in law.functions], [])
        fields = tuple((name, *_field(value)) for name, value in law.values.items())
        code = ast.dump(module, include_attributes=True)
        queues = law.settings.get("queues", 1)
        base = law.base.name
        shape = cls(law.name, law.file, code, fields, law.methods, law.calls, base, queues)
        _TREES[shape] = module
        return shape


_TREES: dict[_Shape, ast.Module] = {}


def _field(value: Number | list[Number]) -> tuple[str, int]:
    first = value[0] if isinstance(value, list) else value
    return ("f8" if isinstance(first, float) else "i8"), len(value) if isinstance(
        value, list
    ) else 0


@dataclass(frozen=True)
class _Built:
    """C functions by method, and the objects that keep them in memory."""

    addresses: dict[str, int]
    state: np.dtype[np.void]
    kept: tuple[Any, ...]


@functools.cache
def _built(shape: _Shape) -> _Built:
    try:
        import numba
    except ImportError:
        raise _missing() from None
    # numba brings numpy; a run without user-defined code does not need it.
    import numpy as np

    from sojourn.own import checks

    state = np.dtype(
        [
            (RNG, "u8"),
            (WHY, "i8"),
            (LINE, "i8"),
            (TURNS, "i8"),
            *((name, kind, (many,)) if many else (name, kind) for name, kind, many in shape.fields),
            # The last field has a name of its own, because numba would confuse a state with another
            # one that begins with the same fields.
            (f"__end{len(shape.fields)}", "i8"),
        ]
    )
    pointer = numba.types.CPointer
    own = numba.from_dtype(state)
    views = {name: numba.from_dtype(_view(name, shape.queues)) for name in VIEWS}
    kinds = {WHOLE: numba.int64, REAL: numba.float64, **views}
    functions = _functions(shape, numba.njit, checks.FUNCTIONS)
    compiled = {}
    name = shape.name
    try:
        # A function is compiled after the functions that it calls, because numba follows calls by
        # recursion.
        for call in shape.calls:
            name = call.name
            functions[FUNCTION + name].compile((own, *(kinds[kind] for kind in call.arguments)))
        for name in shape.methods:
            shown = BASES[shape.base].methods[name]
            # A discipline's method that does not take the packet gets the packet's pointer all the
            # same.
            given = ("packet", "link") if shape.base == "Discipline" else (*shown, *shown)
            signature = numba.int64(pointer(own), *(pointer(views[each]) for each in given))
            outer = _outer(functions[FUNCTION + name], name, shown, numba)
            compiled[name] = numba.cfunc(signature)(outer)
    except Exception as error:  # numba's own, and what its passes fail by
        raise _uncompiled(shape, name, error) from None
    addresses = {method: function.address for method, function in compiled.items()}
    return _Built(addresses, state, tuple(compiled.values()))


def _functions(
    shape: _Shape, njit: Callable[[Any], Any], checks: Mapping[str, Any]
) -> dict[str, Any]:
    """Each function of the class, prepared for compilation."""
    names: dict[str, Any] = {
        "__builtins__": {"len": len, "range": range},
        **checks,
    }
    exec(compile(_TREES[shape], shape.file, "exec"), names)
    for name in [name for name in names if name.startswith(FUNCTION)]:
        names[name] = njit(names[name])
    return names


def _view(name: str, queues: int) -> np.dtype[np.void]:
    """The layout of a view in the engine."""
    import numpy as np

    view = VIEWS[name]
    arrays = [(each, "i8", (queues,)) for each in view.arrays]
    return np.dtype([*((each, "i8") for each in view.numbers), *arrays])


def _outer(inner: Any, method: str, views: Sequence[str], numba: Any) -> Callable[..., int]:
    """The C function around a method: turns pointers into records, and returns `FAILED` if the
    method raises."""
    carray = numba.carray
    if len(views) == 2:

        def decide(state, packet, link):  # type: ignore[no-untyped-def]
            own = carray(state, 1)[0]
            own.__turns = 0
            try:
                return numba.int64(inner(own, carray(packet, 1)[0], carray(link, 1)[0]))
            except Exception:
                return FAILED

        return decide
    if method not in SILENT:

        def ask(state, packet, link):  # type: ignore[no-untyped-def]
            own = carray(state, 1)[0]
            own.__turns = 0
            try:
                return numba.int64(inner(own, carray(link, 1)[0]))
            except Exception:
                return FAILED

        return ask
    if views == ("link",):

        def idle(state, packet, link):  # type: ignore[no-untyped-def]
            own = carray(state, 1)[0]
            own.__turns = 0
            try:
                inner(own, carray(link, 1)[0])
            except Exception:
                return FAILED
            return 0

        return idle

    def notify(state, seen, nothing):  # type: ignore[no-untyped-def]
        own = carray(state, 1)[0]
        own.__turns = 0
        try:
            inner(own, carray(seen, 1)[0])
        except Exception:
            return FAILED
        return 0

    return notify


def _uncompiled(shape: _Shape, name: str, error: Exception) -> UserError:
    """The error for numba's refusal of code that `kinds` accepted."""
    import re

    lines = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).split("\n")
    reason = plain(next((line.strip() for line in lines if line.strip()), "it gives no reason"))
    return UserError(
        f"{shape.file}: {shape.name}.{name} can't be compiled by numba {numba_version()}: {reason[:MOST_SHOWN]}",
        "write simpler statements, and report this error: sojourn should have named the line at fault",
    )
