"""Linux 7.3 at both ends of a handshake with AccECN, byte by byte: each ECN field and each ACE of SYN,
SYN-ACK, last ACK and the first ACK of data, with CUBIC, DCTCP and Prague. The simulator's endpoints
are compared with the same recording (crates/tcp/tests/handshake.rs).

A line has numbers in this order, with ECN fields as in IP's header (0 Not-ECT, 1 ECT(1), 2 ECT(0),
3 CE):

    server CONTROL SYN: ACE, ECN; last ACK: ACE, ECN; with the option
           | SYN-ACK: ACE, ECN, counters of the option (-1: no option) | ACK of the data: the same
    client CONTROL SYN-ACK: ACE, ECN, with the option; ACK of two segments: ACE, CE bytes in thousands
           (-1: no option) | SYN: ACE, ECN | last ACK: ACE, ECN | data: ACE, ECN
           | packets that count as CE before the ACK and after it, ECN of the data that follow
"""

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
