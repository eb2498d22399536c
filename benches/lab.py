"""Measures the lab page from a slider's move to the drawn picture, in headless Chromium.

    python benches/lab.py

It prints the median of 50 moves of the upload's rate, with one and with two disciplines side by
side, for 10 s and for 60 s of a home line. It needs Chromium and an idle machine. The measured time
is the page's own `lab-shown`: from the slider's event to the frame in which everything is drawn.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from sojourn import lab

MOVES = 50
KNOB = 'input[data-key="bottleneck.up.rate"]'


def main() -> None:
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if chromium is None:
        sys.exit("needs Chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = lab.write(Path(folder) / "lab.html")
        print(f"the page: {page_file.stat().st_size / 1e3:.0f} kB")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for seconds in (10, 60):
            for qdiscs in (("fq_codel",), ("pfifo limit 1000", "fq_codel")):
                text = lab.start().text.replace('"10 s"', f'"{seconds} s"')
                link = lab.to_link(lab.Shown(text, qdiscs))
                page = browser.new_page()
                page.goto(f"{page_file.as_uri()}#{link}")
                page.wait_for_selector("html[data-shown]")
                took = [_move(page, 300 + 8 * move) for move in range(MOVES)]
                least, middle, most = min(took), statistics.median(took), max(took)
                print(
                    f"{seconds:3} s of a home line, {len(qdiscs)} side by side: "
                    f"median {middle:.0f} ms ({least:.0f} to {most:.0f})"
                )
                page.close()
        browser.close()


def _move(page: Any, to: int) -> float:
    """Moves the slider and waits for the picture. Returns ms."""
    before = page.get_attribute("html", "data-shown")
    page.fill(KNOB, str(to))
    deadline = time.monotonic() + 30
    while page.get_attribute("html", "data-shown") == before:
        if time.monotonic() > deadline:
            sys.exit("the page shows nothing")
        page.wait_for_timeout(5)
    taken: float = page.evaluate("performance.getEntriesByName('lab-shown').at(-1).duration")
    return taken


if __name__ == "__main__":
    main()
