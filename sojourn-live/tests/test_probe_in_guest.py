"""sojourn-probe on another kernel than the host's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from first_program import boot_mode, compiled
from tree import probe_of_the_tree

from sojourn.engine.kernel.guest import ready
from sojourn_live.measure import findings, probe_file

pytestmark = pytest.mark.usefixtures("kernel_uml")


def test_the_static_program_measures_in_a_guest(tmp_path: Path) -> None:
    """sojourn-probe at both ends of the wire, without a library or a shell, as on a small
    router."""
    guest = ready("uml").guest
    assert guest is not None
    shutil.copy(probe_of_the_tree(), tmp_path / "sojourn-probe")
    boot_mode(guest, compiled("init.c", tmp_path), tmp_path, "probe", limit_s=300.0)
    run = probe_file.read(tmp_path / "session.json")
    assert run.meta.facts["1"]["outcome"] == "complete"
    found = findings.find(run)
    assert found.target == "server udp"
    idle, download, upload, _, _ = found.rows
    # 10 ms each way; 1448 of 1514 bytes of a full segment are payload, at 10 Mbit/s.
    assert 20.0 < idle.spread.median < 21.0
    assert download.mbps["down"] == pytest.approx(9.5, abs=0.4)
    assert upload.mbps["up"] == pytest.approx(9.5, abs=0.4)
    assert upload.induced is not None
    # Four windows wait before the card; their size depends on the guest's memory.
    assert 5 < upload.induced.p95.value < 1000 * 1.2
