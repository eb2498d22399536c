"""What the verbs of live lines offer and the modules take when nothing else is asked for: names and
defaults that both declare by. It imports next to nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PORT = 35_500
"""TCP and UDP port of `sojourn serve`."""
RPM_PORT = 4043
"""Where responsiveness servers listen that have no web server's port."""

LOADS = ("idle", "download", "upload", "both")
"""What a phase of a measurement may be."""
USUAL_LOADS = (*LOADS, "idle")
"""The phases of a measurement, in their order."""


@dataclass(frozen=True)
class Caps:
    """The most that clients of `sojourn serve` may ask for. A client is an IPv4 address, or an IPv6
    network of 64 bits, whatever its sessions."""

    seconds: int = 1800
    """Of load of one client in an hour, each direction counted by itself."""
    bytes: int = 100 * 10**9
    """Sent and received for one client in an hour."""
    streams: int = 64
    """TCP connections in one direction."""
    clients: int = 8
    """Sessions at once; of one client a quarter of them, at least one."""


@dataclass(frozen=True)
class RpmService:
    """What a server of responsiveness offers, and to whom."""

    at: Sequence[str] = ("127.0.0.1",)
    """Addresses to listen at. Loopback: nobody from outside."""
    port: int = RPM_PORT
    """0: any that is free."""
    names: tuple[str, ...] = ()
    """For the certificate that is made at start, beside localhost and the addresses."""
    identity: tuple[Path, Path] | None = None
    """PEM files of a certificate chain and its key, instead."""
    seconds: int = 300
    """That a connection may live."""
    bytes: int = Caps.bytes
    """That a client may move in an hour."""
    connections: int = 256
    """That a client may have at once; all clients together four times as many."""
