"""Opens pages in headless Chromium, if it is installed."""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

HAS_BROWSER = CHROMIUM is not None and importlib.util.find_spec("playwright") is not None
in_a_browser = pytest.mark.skipif(not HAS_BROWSER, reason="needs Chromium and playwright")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A Chromium for all tests of a worker."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


class Opened:
    """A page in a browser, and the errors that it reported."""

    def __init__(self, browser: Any, file: Path, link: str = "", **context: Any) -> None:
        self.context = browser.new_context(**context)
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on(
            "console",
            lambda message: self.errors.append(message.text) if message.type == "error" else None,
        )
        # A page must not fetch anything.
        self.page.on("request", self._asked)
        self.page.goto(file.as_uri() + link)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith(("file:", "blob:", "data:")):
            self.errors.append(f"it asked for {request.url}")

    def close(self) -> None:
        """Closes the page, and fails if it reported errors."""
        self.context.close()
        assert self.errors == []

    def too_wide(self) -> float:
        """Returns by how much the page is wider than the window, in px."""
        found: float = self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return found

    def nameless(self) -> list[str]:
        """Returns the visible controls without a name in the accessibility tree."""
        found = []
        for role in ("slider", "button", "combobox", "textbox", "checkbox", "link"):
            for each in self.page.get_by_role(role).all():
                if each.is_visible():
                    # The first line describes the control; the lines below it describe its options.
                    own = each.aria_snapshot().splitlines()[0]
                    if not re.search(r'"[^"]+"', own):
                        found.append(own)
        return found

    def faint(self) -> list[str]:
        """Returns visible texts with a contrast below WCAG's 4.5, or 3 for large ones."""
        found: list[str] = self.page.evaluate(_FAINT)
        return found


_FAINT = """() => {
  // A colour as the browser computes it, also one of color(srgb ...).
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = text => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].map((v, i) => i < 3 ? v : v / 255);
  };
  const over = (top, below) => top.slice(0, 3).map((v, i) => v * top[3] + below[i] * (1 - top[3]));
  const light = rgb => {
    const [r, g, b] = rgb.map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = element => {
    const papers = [];
    for (let at = element; at; at = at.parentElement) papers.push(rgba(getComputedStyle(at).backgroundColor));
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    return papers.reduceRight((below, paper) => over(paper, below), dark ? [0, 0, 0] : [255, 255, 255]);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode()) {
    const text = walker.currentNode.data.trim(), element = walker.currentNode.parentElement;
    if (!text || !element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    if (["SCRIPT", "STYLE"].includes(element.tagName) || element.closest("svg, select")) continue;
    const style = getComputedStyle(element), paper = behind(element), ink = over(rgba(style.color), paper);
    const [high, low] = [light(ink), light(paper)].sort((a, b) => b - a);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && +style.fontWeight >= 700);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < (large ? 3 : 4.5)) found.push(`${contrast.toFixed(2)}: ${text.slice(0, 60)}`);
  }
  return found;
}"""
