"""A router in user space instead of the kernel's. It can change the DS field of forwarded packets,
drop packets by their DS field, and queue and mark at a rate. Run `live_forwarder.py RULES` in a
router's namespace.

RULES is JSON: {"up": {...}, "down": {...}}, each with any of `keep_ecn` false (bleach), `keep_dscp`
false, `drop` (DS fields), `bps` with `mark_ms` and `limit_ms` (a queue). It prints "ready", and at
the end of its stdin the number of sent packets by direction, protocol and DS field."""

import collections
import errno
import fcntl
import json
import select
import socket
import struct
import subprocess
import sys
import time

DEVICES = {"up": "to-server", "down": "to-client"}
"""The egress device of each direction; it is the ingress device of the other direction."""
PEERS = {"up": "10.77.2.2", "down": "10.77.1.2"}
IPV4, ETH_P_IP = b"\x08\x00", 0x0800
OUTGOING = 4


def mac_of(device: str) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("256s", device.encode())
        return bytes(fcntl.ioctl(any_socket, 0x8927, asked)[18:24])


def mac_beyond(device: str, address: str) -> bytes:
    """The MAC address of a host behind the device; the kernel resolves it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _ in range(100):
            any_socket.sendto(b"", (address, 9))
            time.sleep(0.02)
            said = subprocess.run(
                ["ip", "neigh", "show", address, "dev", device],
                capture_output=True, text=True, check=True,
            ).stdout.split()  # fmt: skip
            if "lladdr" in said:
                return bytes.fromhex(said[said.index("lladdr") + 1].replace(":", ""))
    raise SystemExit(f"nobody at {address}")


def checked(header: bytearray) -> bytearray:
    header[10:12] = b"\0\0"
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    header[10:12] = struct.pack("!H", ~total & 0xFFFF)
    return header


class Way:
    """One direction."""

    def __init__(self, direction: str, rules: dict[str, object]) -> None:
        self.rules = rules
        self.device = DEVICES[direction]
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
        self.socket.bind((self.device, ETH_P_IP))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.socket.setblocking(False)
        self.own = mac_of(self.device)
        self.head = mac_beyond(self.device, PEERS[direction]) + self.own + IPV4
        self.waiting: collections.deque[tuple[float, bytes]] = collections.deque()
        self.free_at = 0.0
        self.sent: collections.Counter[str] = collections.Counter()

    def take(self, packet: bytes) -> None:
        """Forwards an IP packet in this direction."""
        rules, ds, now = self.rules, packet[1], time.monotonic()
        if ds in rules.get("drop", ()):
            return
        if not rules.get("keep_ecn", True):
            ds &= 0xFC
        if not rules.get("keep_dscp", True):
            ds &= 3
        due = now
        if "bps" in rules:
            begins = max(now, self.free_at)
            wait_ms = 1e3 * (begins - now)
            if wait_ms > rules["limit_ms"]:
                return
            if wait_ms > rules["mark_ms"] and ds & 3:
                ds |= 3
            self.free_at = due = begins + 8 * len(packet) / rules["bps"]
        header = bytearray(packet[: 4 * (packet[0] & 15)])
        header[1] = ds
        self.waiting.append((due, self.head + bytes(checked(header)) + packet[len(header) :]))
        self.sent[f"{packet[9]} {ds}"] += 1

    def send(self) -> None:
        now = time.monotonic()
        while self.waiting and self.waiting[0][0] <= now:
            try:
                self.socket.send(self.waiting[0][1])
            except BlockingIOError:
                return
            except OSError as error:
                # The queue of the network's own bottleneck is full.
                if error.errno != errno.ENOBUFS:
                    raise
            self.waiting.popleft()


def main() -> None:
    rules = json.loads(sys.argv[1])
    ways = {name: Way(name, rules.get(name, {})) for name in DEVICES}
    goes = {ways["down"]: ways["up"], ways["up"]: ways["down"]}
    by_socket = {way.socket: way for way in ways.values()}
    print("ready", flush=True)
    while True:
        dues = [way.waiting[0][0] for way in ways.values() if way.waiting]
        left = max(0.0, min(dues) - time.monotonic()) if dues else 0.2
        readable, _, _ = select.select([*by_socket, sys.stdin], [], [], left)
        if sys.stdin in readable:
            break
        for one in readable:
            for _ in range(64):
                try:
                    frame, (_, _, kind, *_) = one.recvfrom(2048)
                except BlockingIOError:
                    break
                # The socket also receives the packets that leave here.
                if kind != OUTGOING and frame[:6] == by_socket[one].own:
                    length = struct.unpack_from("!H", frame, 16)[0]
                    goes[by_socket[one]].take(frame[14 : 14 + length])
        for way in ways.values():
            way.send()
    print(json.dumps({name: way.sent for name, way in ways.items()}), flush=True)


if __name__ == "__main__":
    main()
