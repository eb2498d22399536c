"""The properties of TCP endpoints, by profile (crates/scenario, tcp.rs)."""

from sojourn import _core
from sojourn.scenario.realised import Tcp

MTU = _core.MTU
"""IP bytes of a full segment."""

PROFILES: dict[str, Tcp] = _core.tcp_profiles()
"""The endpoints of each profile with default settings, by name."""
