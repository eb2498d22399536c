"""Traffic for the tests of live links: TCP connections that fill a line, and small UDP packets that
are echoed beside them.

live_traffic.py serve ADDRESS             receives, sends on request, and echoes
live_traffic.py up|down ADDRESS SECONDS   prints {"rtt_ms": [...], "mbit_s": ...}, without the first second
"""

import contextlib
import json
import socket
import struct
import sys
import threading
import time

PORT = 5001
EVERY_S = 0.02
CHUNK = bytes(65536)
CONNECTIONS = 4
CONGESTION = b"reno"
"""Every host has Reno. It fills a queue from slow start on, and backs off after losses."""


def serve(address: str) -> None:
    echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    echo.bind((address, PORT))
    listener = socket.create_server((address, PORT))

    def turn_round() -> None:
        while True:
            data, peer = echo.recvfrom(2048)
            echo.sendto(data, peer)

    threading.Thread(target=turn_round, daemon=True).start()
    print("ready", flush=True)
    while True:
        threading.Thread(target=answer, args=listener.accept()[:1], daemon=True).start()


def answer(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, CONGESTION)
        if connection.recv(1) == b"d":
            while True:
                connection.sendall(CHUNK)
        while connection.recv(65536):
            pass
    connection.close()


def load(direction: str, address: str, seconds: float) -> None:
    begin = time.monotonic()
    moved = [0] * CONNECTIONS

    def fill(number: int) -> None:
        with socket.create_connection((address, PORT), timeout=10) as connection:
            # Data that is still in the buffers at the end is not sent.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, CONGESTION)
            connection.sendall(direction[:1].encode())
            while time.monotonic() < begin + seconds:
                count = connection.send(CHUNK) if direction == "up" else len(connection.recv(65536))
                moved[number] += count if time.monotonic() > begin + 1 else 0

    threads = [threading.Thread(target=fill, args=(number,)) for number in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    probe.settimeout(1)
    rtts: list[float] = []

    def hear() -> None:
        with contextlib.suppress(TimeoutError):
            while True:
                sent = float(probe.recv(2048))
                if sent > begin + 1:
                    rtts.append((time.monotonic() - sent) * 1e3)

    threads.append(threading.Thread(target=hear))
    threads[-1].start()
    while (now := time.monotonic()) < begin + seconds:
        probe.sendto(b"%.9f" % now, (address, PORT))
        time.sleep(EVERY_S)
    for thread in threads:
        thread.join()
    print(json.dumps({"rtt_ms": rtts, "mbit_s": sum(moved) * 8 / 1e6 / (seconds - 1)}))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        load(sys.argv[1], sys.argv[2], float(sys.argv[3]))
