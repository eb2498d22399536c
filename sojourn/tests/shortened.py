"""Shortens the simulations of pages and leaves out figures. A longer simulation tests a command no
better, and other tests check figures."""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from sojourn import figures, report
from sojourn.figures import style


def shortened(text: str) -> str:
    """Returns a page whose simulations have twelve seconds, two seeds and slow lines."""
    text = re.sub(r'(duration"?\s*[=:]\s*)"\d\d s"', r'\1"12 s"', text)
    text = re.sub(r'(warmup"?\s*[=:]\s*)"\d+ s"', r'\1"1 s"', text)
    text = re.sub(r"\b90( M|m)bit", r"20\1bit", text)
    text = text.replace("sojourn advise ", 'sojourn advise --set duration="12 s" ')
    return re.sub(r"(seeds\s*=?\s*)[3-9]\b", r"\g<1>2", text)


def undrawn(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Replaces figures and pages of Runs by empty files. The calls must still have valid
    arguments."""
    drawn = {name for name in figures.__all__ if name[0].islower()} - {"all_for", "save"}
    for name in drawn:
        monkeypatch.setattr(figures, name, empty(getattr(figures, name)))
    unrendered(monkeypatch)
    monkeypatch.setattr(report, "write", _touched)
    monkeypatch.setattr(Figure, "savefig", lambda _figure, file, **_more: Path(file).touch())
    yield


def unrendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces figures by empty pictures; the rest of a page is complete."""
    monkeypatch.setattr(style, "render", lambda *_args, **_more: b"<svg/>")


def _touched(_runs: object, file: str | Path, *_args: object, **_more: object) -> Path:
    Path(file).touch()
    return Path(file)


def empty(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Returns a function that draws nothing and takes the same arguments."""
    signature = inspect.signature(draw)

    def drawn(*args: object, **more: object) -> Figure:
        signature.bind(*args, **more)
        return Figure()

    return drawn
