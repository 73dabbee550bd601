"""A process that takes connections with TLS and forwards them without, for servers whose binary cannot take TLS.

    python -m support.tls_proxy CERTIFICATE KEY HOST:PORT

It prints the port on which it listens.
"""

import asyncio
import ssl
import sys
from contextlib import suppress

HOST = "127.0.0.1"


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def main(certificate: str, key: str, server: str) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    host, _, port = server.partition(":")

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection(host, port)
        await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))

    listening = await asyncio.start_server(forward, HOST, 0, ssl=context)
    print(listening.sockets[0].getsockname()[1], flush=True)
    await listening.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
