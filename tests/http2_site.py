"""A small HTTP/2 server over TLS on loopback."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import h2.config
import h2.connection
import h2.events

from embedding.kernel.certificates import make_certificate


@dataclass
class Http2Site:
    """Answers each path with its own name; 404 for robots.txt."""

    base: str = ""
    connections: int = 0
    asked: list[str] = field(default_factory=list)

    @property
    def host(self) -> str:
        return self.base.removeprefix("https://")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        config = h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        connection = h2.connection.H2Connection(config)
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        try:
            while data := await reader.read(65536):
                for event in connection.receive_data(data):
                    if isinstance(event, h2.events.RequestReceived):
                        self._answer(connection, event)
                writer.write(connection.data_to_send())
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    def _answer(
        self, connection: h2.connection.H2Connection, event: h2.events.RequestReceived
    ) -> None:
        path = str(dict(event.headers)[":path"])
        self.asked.append(path)
        status = "404" if path == "/robots.txt" else "200"
        stream = event.stream_id
        connection.send_headers(stream, [(":status", status), ("content-type", "text/html")])
        connection.send_data(stream, path.encode(), end_stream=True)


@asynccontextmanager
async def serving_http2(folder: Path) -> AsyncIterator[Http2Site]:
    pem, key = make_certificate(folder, "loopback")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pem, key)
    context.set_alpn_protocols(["h2"])
    site = Http2Site()
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0, ssl=context)
    site.base = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield site
    finally:
        server.close()
