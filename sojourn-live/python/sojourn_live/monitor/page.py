"""A page on loopback that shows a monitor's database while it is written.

The server is Python's own http.server. A few numbers a second in one direction need neither a
WebSocket nor a framework: the page polls them. The server opens the database like any other reader
and can't change it.

Any page in the same browser may send requests to loopback. So each request must have this run's
random token, name this server as its host (against DNS rebinding), and not come from another
origin.
"""

from __future__ import annotations

import contextlib
import functools
import hmac
import json
import re
import secrets
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sojourn import hypertext
from sojourn.errors import UserError
from sojourn_live.monitor.store import Reader, StoreError

HOST = "127.0.0.1"
SPANS_S = (600, 3600, 6 * 3600, 86400)
"""The spans that the page offers, s."""
ROWS = 900
"""About how many rows a span has."""


@contextlib.contextmanager
def serve(path: Path, port: int = 0, *, beside: Path | None = None) -> Iterator[str]:
    """Serves the page of a database until the end of the context. Yields its address, which
    contains the token. `beside`: a database whose targets it shows as well.

    Raises StoreError for a file that can't be read, UserError for a port that is taken.
    """
    with Reader(path):
        pass
    token = secrets.token_urlsafe(16)
    try:
        server = ThreadingHTTPServer((HOST, port), functools.partial(_Handler, path, token, beside))
    except OSError as error:
        raise UserError(
            f"can't listen on {HOST}:{port}: {error.strerror}", "leave the port out for a free one"
        ) from None
    server.daemon_threads = True
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True
    )
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}/?token={token}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


_SECONDS = re.compile(r"[0-9]{1,9}|[0-8][0-9]{9}")
"""Up to the year 2255, so that the nanoseconds fit into 64 bits."""


class _Handler(BaseHTTPRequestHandler):
    timeout = 10
    """Seconds after which a silent client is dropped."""
    server_version = "sojourn"
    sys_version = ""

    def __init__(self, path: Path, token: str, beside: Path | None, *arguments: Any) -> None:
        self._database = path
        self._beside = beside
        self._token = token
        super().__init__(*arguments)

    def do_GET(self) -> None:
        """Sends the page, or the data that it polls."""
        try:
            url = urlsplit(self.path)
        except ValueError:
            self._send(400, "text/plain", b"malformed address\n")
            return
        values = {name: given[-1] for name, given in parse_qs(url.query).items()}
        if not self._ours(values.get("token", "")):
            self._send(
                403,
                "text/plain",
                b"use the address that `sojourn monitor --page` printed: it contains a token\n",
            )
        elif url.path == "/":
            self._send(200, "text/html", _page())
        elif url.path == "/data":
            self._data(values)
        else:
            self._send(404, "text/plain", b"there is no such page\n")

    def _ours(self, token: str) -> bool:
        port = self.connection.getsockname()[1]
        hosts = {f"{HOST}:{port}", f"localhost:{port}"}
        origin = self.headers.get("Origin")
        return (
            hmac.compare_digest(token.encode(), self._token.encode())
            and self.headers.get("Host") in hosts
            and (origin is None or origin in {f"http://{host}" for host in hosts})
        )

    def _data(self, values: dict[str, str]) -> None:
        span, since = values.get("span", ""), values.get("since", "0")
        if span not in map(str, SPANS_S) or not _SECONDS.fullmatch(since):
            self._send(400, "text/plain", b"invalid span or since\n")
            return
        try:
            now = time.time()
            shown = data(self._database, int(span), int(since), now)
            if self._beside is not None:
                other = data(self._beside, int(span), int(since), now, width=shown["width"])
                shown["targets"] += other["targets"]
            body = json.dumps(shown)
        except StoreError as error:
            self._send(500, "text/plain", f"{error.problem}\n".encode())
            return
        self._send(200, "application/json", body.encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
            "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Logs nothing, because the terminal shows the monitor."""


def data(
    path: Path, span_s: int, since_s: int, now_s: float, *, width: int | None = None
) -> dict[str, Any]:
    """The data of the last `span_s` seconds for the page, rows from `since_s` on: RTTs in ms, rates
    in Mbit/s. `width`: of the roll-ups, s; None: one that suits the span."""
    with Reader(path) as reader:
        width = width or reader.width(now_s - span_s, span_s / ROWS)
        start, end = max(now_s - span_s, since_s), now_s + 2 * width
        targets = []
        for target in reader.targets():
            columns = reader.outline(target.id, width, start, end)
            if not columns["t_s"] and since_s == 0:
                continue
            shown: dict[str, Any] = {"name": target.name, "address": target.address}
            shown["gap"] = max(1.5 * width, 3.5 * target.interval_ns / 1e9)
            shown |= {name: columns[f"{name}_s"] for name in ("t",)} | {
                name: columns[name] for name in ("sent", "lost")
            }
            for name in ("min", "p10", "p50", "p90", "max"):
                shown[name] = [
                    None if v is None else round(v / 1e6, 3) for v in columns[f"{name}_ns"]
                ]
            targets.append(shown)
        traffic = []
        for name, interface in reader.interfaces().items():
            carried = reader.traffic(interface, width, start, end)
            if carried.t_s.size or since_s:
                per_s = 8e3 / carried.measured_ns
                traffic.append(
                    {
                        "name": name,
                        "t": carried.t_s.tolist(),
                        "received": (carried.received_bytes * per_s).round(4).tolist(),
                        "sent": (carried.sent_bytes * per_s).round(4).tolist(),
                    }
                )
        events = [
            {"t": event.t_ns / 1e9, "text": f"{event.kind} {event.text}".strip()}
            for event in reader.events(start, end)
        ]
    return {"now": now_s, "width": width, "targets": targets, "traffic": traffic, "events": events}


@functools.cache
def _page() -> bytes:
    """The page, self-contained."""
    page = hypertext.filled(
        "sojourn_live.monitor/page.html",
        title="sojourn monitor",
        css=hypertext.text("sojourn.report/vendor/uPlot.min.css", "sojourn_live.monitor/page.css"),
        spans=json.dumps(SPANS_S),
        uplot=hypertext.text("sojourn.report/vendor/uPlot.iife.min.js"),
        script=hypertext.text("sojourn_live.monitor/page.js"),
    )
    return page.encode()
