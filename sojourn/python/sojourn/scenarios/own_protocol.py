"""A transfer over UDP: numbered chunks, a window of a fixed size, an acknowledgement for each chunk.

python3 own_protocol.py serve ADDRESS
python3 own_protocol.py fetch ADDRESS
"""

import select
import socket
import struct
import sys
import time

PORT = 7000
CHUNKS = 2000
CHUNK_BYTES = 1200
WINDOW = int(sys.argv[3]) if len(sys.argv) > 3 else 40
TIMEOUT_S = 0.2
NUMBER = struct.Struct("!I")
BEGIN = 0xFFFF_FFFF


def serve(address: str) -> None:
    """Sends the chunks to the client that asks first."""
    line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    line.bind((address, PORT))
    _, client = line.recvfrom(NUMBER.size)
    sent_at: dict[int, float] = {}
    acknowledged: set[int] = set()
    following = again = 0
    while len(acknowledged) < CHUNKS:
        now = time.monotonic()
        due = [chunk for chunk, at in sent_at.items() if now - at > TIMEOUT_S]
        again += len(due)
        while following < CHUNKS and len(sent_at) < WINDOW:
            sent_at[following] = now
            due.append(following)
            following += 1
        for chunk in due:
            line.sendto(NUMBER.pack(chunk) + bytes(CHUNK_BYTES), client)
            sent_at[chunk] = now
        if select.select([line], [], [], 0.01)[0]:
            (chunk,) = NUMBER.unpack(line.recv(NUMBER.size))
            if sent_at.pop(chunk, None) is not None:
                acknowledged.add(chunk)
    print(f"{CHUNKS} chunks, {again} of them sent again")


def fetch(address: str) -> None:
    """Asks the server, and acknowledges each chunk."""
    line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    line.connect((address, PORT))
    line.settimeout(TIMEOUT_S)
    begun = time.monotonic()
    got: set[int] = set()
    line.send(NUMBER.pack(BEGIN))
    while len(got) < CHUNKS:
        try:
            (chunk,) = NUMBER.unpack_from(line.recv(NUMBER.size + CHUNK_BYTES))
        except TimeoutError:
            # The request may be lost; the server repeats what it sends.
            line.send(NUMBER.pack(BEGIN))
            continue
        got.add(chunk)
        line.send(NUMBER.pack(chunk))
    print(f"{len(got) * CHUNK_BYTES} bytes in {time.monotonic() - begun:.3f} s")


{"serve": serve, "fetch": fetch}[sys.argv[1]](sys.argv[2])
