"""A transfer over one stream of QUIC, by aioquic.

python3 aioquic_transfer.py serve ADDRESS cubic|reno
python3 aioquic_transfer.py fetch ADDRESS BYTES
"""

import asyncio
import datetime
import ssl
import sys
import time

try:
    from aioquic.asyncio.protocol import QuicConnectionProtocol
    from aioquic.asyncio.server import serve
    from aioquic.quic.configuration import QuicConfiguration
    from aioquic.quic.connection import QuicConnection
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
except ImportError as error:
    sys.exit(f"{sys.executable} has no aioquic (PyPI: pip install aioquic): {error}")

PORT = 4433
PROTOCOL = "transfer"
WINDOW = 16 << 20
PART = 1 << 16


def credentials() -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """A certificate of its own, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "server")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    return builder.sign(key, hashes.SHA256()), key


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends as many bytes as the client asks for."""
    left = int(await reader.readline())
    while left > 0:
        part = min(left, PART)
        writer.write(bytes(part))
        await writer.drain()
        left -= part
    writer.write_eof()


async def run_server(address: str, control: str) -> None:
    """Serves for ever."""
    configuration = QuicConfiguration(
        is_client=False, alpn_protocols=[PROTOCOL], congestion_control_algorithm=control
    )
    configuration.certificate, configuration.private_key = credentials()

    def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.ensure_future(answer(reader, writer)))

    tasks: set[asyncio.Future[None]] = set()
    await serve(address, PORT, configuration=configuration, stream_handler=handler)
    await asyncio.Future()


async def run_client(address: str, wanted: str) -> None:
    """Asks for some bytes and prints how long they take."""
    configuration = QuicConfiguration(
        alpn_protocols=[PROTOCOL],
        verify_mode=ssl.CERT_NONE,
        max_data=WINDOW,
        max_stream_data=WINDOW,
        server_name="server",
    )
    connection = QuicConnection(configuration=configuration)
    # aioquic's connect() opens a socket of IPv6, which the guest has not.
    _, protocol = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: QuicConnectionProtocol(connection), local_addr=("0.0.0.0", 0)
    )
    begun = time.monotonic()
    protocol.connect((address, PORT))
    await protocol.wait_connected()
    reader, writer = await protocol.create_stream()
    writer.write(f"{wanted}\n".encode())
    writer.write_eof()
    got = 0
    while part := await reader.read(PART):
        got += len(part)
    print(f"{got} bytes in {(time.monotonic() - begun) * 1e3:.0f} ms", flush=True)
    protocol.close()
    await protocol.wait_closed()


asyncio.run({"serve": run_server, "fetch": run_client}[sys.argv[1]](*sys.argv[2:]))
