"""What a TCP endpoint is by its profile, and the names of the congestion controls (crates/scenario, tcp.rs)."""

from typing import Any

from sojourn import _core

MTU = _core.MTU
"""IP bytes of a full segment."""

CONGESTION = tuple(_core.CONGESTION)
"""Congestion controls by name: the simulator's, then the kernel's alone."""

PROFILES: dict[str, dict[str, Any]] = _core.tcp_profiles()
"""Each profile as a full set of crates/tcp's TcpParams, by its name."""
