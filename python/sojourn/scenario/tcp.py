"""What a TCP endpoint is by its profile (crates/scenario, tcp.rs)."""

from typing import Any

from sojourn import _core

MTU = _core.MTU
"""IP bytes of a full segment."""

PROFILES: dict[str, dict[str, Any]] = _core.tcp_profiles()
"""Each profile as a full set of crates/tcp's TcpParams, by its name."""
