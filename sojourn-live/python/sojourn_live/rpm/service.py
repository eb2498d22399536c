"""A server for clients of draft-ietf-ippm-responsiveness: HTTP/2 over TLS, by crates/rpm."""

from __future__ import annotations

import ipaddress
import json

from sojourn import linux_only as linux_only
from sojourn_live import _live
from sojourn_live.defaults import RpmService
from sojourn_live.measure.session import LiveError


def server(service: RpmService) -> _live.RpmServer:
    """Starts a server. It answers until its `stop`.

    Raises:
        LiveError: it can't listen there, or its certificate can't be read.
    """
    options = {
        "at": [
            f"[{at}]:{service.port}" if ":" in at else f"{at}:{service.port}" for at in service.at
        ],
        "names": list(service.names),
        "identity": service.identity and [str(file) for file in service.identity],
        "seconds": service.seconds,
        "bytes": service.bytes,
        "connections": service.connections,
    }
    for at in service.at:
        _check_address(at)
    try:
        return _live.RpmServer(json.dumps(options))
    except _live.MeasureError as error:
        raise LiveError(*error.args) from None


def _check_address(text: str) -> None:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        raise LiveError(
            f"{text!r} is not an address to listen at",
            "write one of this host's, or 0.0.0.0 for all of them",
        ) from None


def url(address: str, port: int) -> str:
    """The URL of a server for its clients."""
    return f"https://[{address}]:{port}" if ":" in address else f"https://{address}:{port}"


def is_loopback(address: str) -> bool:
    """Whether only this host can reach the address."""
    return ipaddress.ip_address(address).is_loopback
