"""Runs the documents' commands for real lines on a line made of network namespaces: the commands
for the home, and `sojourn serve` beyond the line. They run in real time, some minutes per page."""

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from live_network import ROUTER_TO_CLIENT, SERVER, LiveNetwork, live_network
from tree import ROOT

sys.path.insert(0, str(ROOT / "docs" / "site"))

import blocks
import pages

__all__ = ["live_network"]

TEXTS = {
    path: text
    for path, text in pages.written().items()
    if pages.is_run(path) and any("line" in block.before for block in blocks.find(text))
}
NAMES = {"HOST": SERVER, "far.example": SERVER, "192.168.1.1": ROUTER_TO_CLIENT}
"""Host names on the pages, and their addresses here."""
PATIENCE_S = 600.0


class Line:
    """Runs sojourn's commands at either end."""

    def __init__(self, network: LiveNetwork, servers: contextlib.ExitStack) -> None:
        self.network, self.servers = network, servers

    def __call__(self, words: Sequence[str], folder: Path) -> int:
        named = [NAMES.get(word, word) for word in words]
        # Each host has its own mount namespace. A process that enters it starts in the root folder.
        command = ("env", f"--chdir={folder}", sys.executable, "-m", "sojourn", *named)
        if named[0] == "serve":
            server = self.network.start("server", *command)
            self.servers.enter_context(server)
            time.sleep(3)
            return 0
        done = self.network.run("client", *command, check=False, timeout=PATIENCE_S)
        # pytest shows stderr if a block fails.
        print(done.stderr, file=sys.stderr)
        print(done.stdout)
        return done.returncode


@pytest.fixture
def line(live_network: LiveNetwork) -> Iterator[Line]:
    with contextlib.ExitStack() as servers:
        yield Line(live_network, servers)


@pytest.mark.long
@pytest.mark.parametrize("path", TEXTS)
def test_a_page_s_commands_for_a_real_line_work(path: str, tmp_path: Path, line: Line) -> None:
    player = blocks.Player(path, tmp_path, line=line)
    for block in blocks.find(TEXTS[path]):
        if "line" in block.before:
            player.play(block)
    assert list(tmp_path.glob("runs/*")) or (tmp_path / "before").is_dir()
