"""The laboratory as a page: the simulator in a browser, in one file that opens from a disk.

    from sojourn import lab

    lab.write("lab.html")
    lab.write("mine.html", lab.Shown(text=open("mine.toml").read(), qdiscs=("codel", "cake")))

The engine in the page is crates/lab, compiled for wasm32: the language, the simulator and the
numbers of the command line. `make` builds it and puts it beside this file, as `engine.wasm`. In the
page it is compressed, and the browser decompresses it. The page fetches nothing: its
Content-Security-Policy forbids every request.

A `Shown` is the state of the page; `permalink` writes one as the part of an address behind its #.
"""

from __future__ import annotations

import base64
import functools
import gzip
import json
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from sojourn import _core
from sojourn.errors import UserError
from sojourn.lab.lessons import lessons
from sojourn.lab.permalink import MOST_QDISCS, MOST_TEXT, Shown, read_link, to_link
from sojourn.places import make_missing
from sojourn.records import write_whole
from sojourn.scenario import examples

__all__ = [
    "FILE",
    "MOST_QDISCS",
    "MOST_TEXT",
    "Shown",
    "is_there",
    "lessons",
    "read_link",
    "render",
    "start",
    "to_link",
    "write",
]

FILE = "lab.html"
"""The name of the page when it is beside other pages."""
_ENGINE = "engine.wasm"


def is_there() -> bool:
    """Whether this sojourn was built with the page's engine."""
    return bool(_here(_ENGINE).is_file())


def start() -> Shown:
    """The page's first state."""
    return Shown(_text("start.toml"), ("pfifo limit 1000", "fq_codel"))


def write(path: str | Path, state: Shown | None = None) -> Path:
    """Writes the page with this state. UserError: it can't be written, or has no engine."""
    file = Path(path)
    page = render(state)
    try:
        write_whole(file, page.encode())
    except OSError as error:
        raise UserError(
            f"can't write {file}: {error.strerror or error}", "choose another file"
        ) from None
    return file


def render(state: Shown | None = None) -> str:
    """The page as HTML. In a source tree, a missing engine is built first."""
    if not make_missing(Path(str(_here(_ENGINE))), "the lab's engine"):
        raise UserError(
            "this sojourn was built without the lab's engine",
            "build it where rustup has the target wasm32-unknown-unknown: make setup",
        )
    return _page().substitute(state=_safe_json((state or start()).plain()))


@functools.cache
def _page() -> Template:
    """The page without its state."""
    vendor = files("sojourn.report") / "vendor"
    filled = Template(_text("page.html")).safe_substitute(
        css=(vendor / "uPlot.min.css").read_text(encoding="utf-8")
        + _text("legend.css", "sojourn.report")
        + _text("page.css"),
        uplot=(vendor / "uPlot.iife.min.js").read_text(encoding="utf-8"),
        worker=_text("worker.js"),
        engine=_digits(gzip.compress(_here(_ENGINE).read_bytes(), mtime=0)),
        facts=_safe_json(_facts()),
        script=_text("page.js"),
        version=_core.VERSION,
    )
    head, state, rest = filled.partition("$state")
    return Template(head.replace("$", "$$") + state + rest.replace("$", "$$"))


_FIRST, _COUNT = 40, 85
_AS_DIGITS = bytes.maketrans(
    bytes(range(33, 33 + _COUNT)), bytes(range(_FIRST, _FIRST + _COUNT)).replace(b"<", b"}")
)


def _digits(data: bytes) -> str:
    """Bytes as text: four bytes are five digits to the base 85, the most significant first, as in
    Ascii85. The text is a sixteenth shorter than base64. No digit has a meaning in HTML or in a
    Template. page.js decodes it."""
    return base64.a85encode(data).replace(b"z", b"!!!!!").translate(_AS_DIGITS).decode()


def _facts() -> dict[str, Any]:
    """The data of the page: examples, lessons, names, colours."""
    from sojourn.figures import style

    simulated = [kind for kind in style.QDISCS if kind in _core.QDISCS and kind != "own"]
    return {
        "qdiscs": simulated,
        "colours": {kind: style.QDISCS[kind][0] for kind in simulated},
        "flows": [colour for colour in style.FLOWS if colour != style.BLACK],
        "examples": {
            path.stem: text
            for path in examples.simulated()
            # An example with a trace is left out, because the page can't read the trace's file.
            if "trace" not in (text := path.read_text(encoding="utf-8"))
        },
        "lessons": [lesson.plain() for lesson in lessons()],
    }


def _safe_json(value: object) -> str:
    """JSON that can't end the script that contains it."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")


def _here(name: str) -> Any:
    return files(__package__) / name


def _text(name: str, package: str = __package__) -> str:
    return (files(package) / name).read_text(encoding="utf-8")
