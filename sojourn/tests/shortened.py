"""Pages whose simulations are short, and figures that are not drawn: a command is no more right for being
long, and other tests look at figures."""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from sojourn import figures, report
from sojourn.figures import style


def shortened(text: str) -> str:
    """A page whose simulations are of twelve seconds, two seeds and slow lines."""
    text = re.sub(r'(duration"?\s*[=:]\s*)"\d\d s"', r'\1"12 s"', text)
    text = re.sub(r'(warmup"?\s*[=:]\s*)"\d+ s"', r'\1"1 s"', text)
    text = re.sub(r"\b90( M|m)bit", r"20\1bit", text)
    text = text.replace("sojourn advise ", 'sojourn advise --set duration="12 s" ')
    return re.sub(r"(seeds\s*=?\s*)[3-9]\b", r"\g<1>2", text)


def undrawn(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Figures and pages of Runs are files with nothing in them. What they are called with has to
    fit."""
    drawn = {name for name in figures.__all__ if name[0].islower()} - {"all_for", "save"}
    for name in drawn:
        monkeypatch.setattr(figures, name, empty(getattr(figures, name)))
    unrendered(monkeypatch)
    monkeypatch.setattr(report, "write", _touched)
    monkeypatch.setattr(Figure, "savefig", lambda _figure, file, **_more: Path(file).touch())
    yield


def unrendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures become no pictures: a page has all but those."""
    monkeypatch.setattr(style, "render", lambda *_args, **_more: b"<svg/>")


def _touched(_runs: object, file: str | Path, *_args: object, **_more: object) -> Path:
    Path(file).touch()
    return Path(file)


def empty(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """A figure's function that draws nothing of what it takes."""
    signature = inspect.signature(draw)

    def drawn(*args: object, **more: object) -> Figure:
        signature.bind(*args, **more)
        return Figure()

    return drawn
