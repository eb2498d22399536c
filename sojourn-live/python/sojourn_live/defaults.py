"""Names and defaults that the verbs of live lines share with the modules. It imports almost
nothing, because `--help` needs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PORT = 35_500
"""TCP and UDP port of `sojourn serve`."""
RPM_PORT = 4043
"""TCP port of responsiveness servers that do not share a web server's port."""

LOADS = ("idle", "download", "upload", "both")
"""Kinds of a phase."""
USUAL_LOADS = (*LOADS, "idle")
"""The default phases of a measurement, in order."""


@dataclass(frozen=True)
class Caps:
    """Limits of `sojourn serve`. A client is an IPv4 address or an IPv6 /64, with all its
    sessions."""

    seconds: int = 1800
    """Seconds of load for one client in an hour, counted for each direction."""
    bytes: int = 100 * 10**9
    """Bytes sent and received for one client in an hour."""
    streams: int = 64
    """TCP connections in one direction."""
    clients: int = 8
    """Sessions at once. One client may have a quarter of them, at least one."""


@dataclass(frozen=True)
class RpmService:
    """Addresses, certificate and limits of a responsiveness server."""

    at: Sequence[str] = ("127.0.0.1",)
    """Addresses to listen at. The default, loopback, admits no other host."""
    port: int = RPM_PORT
    """0: any free port."""
    names: tuple[str, ...] = ()
    """Names in the certificate made at start, in addition to localhost and the addresses."""
    identity: tuple[Path, Path] | None = None
    """PEM files of a certificate chain and its key; None: a certificate is made at start."""
    seconds: int = 300
    """The longest life of a connection."""
    bytes: int = Caps.bytes
    """Bytes that a client may send and receive in an hour."""
    connections: int = 256
    """Connections that a client may have at once; all clients together may have four times as
    many."""
