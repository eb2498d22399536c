"""Linux 7.3 at both ends of a handshake with AccECN, byte by byte, with CUBIC, DCTCP and Prague.
The test records each ECN field and each ACE of SYN, SYN-ACK, last ACK and the first ACK of data.
crates/tcp/tests/handshake.rs compares the simulator's endpoints with the same recording."""

from pathlib import Path

from first_program import compiled

from sojourn.engine.kernel.guest import Boot, overlay, ready, run

RECORDED = Path(__file__).parent.parent.parent / "crates/tcp/tests/recordings/accecn-linux-7.3.txt"


def test_handshakes_of_the_guest_are_those_that_were_recorded(
    kernel_73: str, tmp_path: Path
) -> None:
    program = compiled("accecn.c", tmp_path)
    guest = ready("uml-7.3").guest
    assert guest is not None, kernel_73
    folder = tmp_path / "guest"
    folder.mkdir()
    added = overlay(program, {})
    booted = run(guest, Boot(folder, added, seed=1, memory_mb=128, pairs=1, wall_limit_s=120.0))
    lines = [line for line in booted.console.splitlines() if line.startswith(("server", "client"))]
    assert lines == RECORDED.read_text().splitlines()
