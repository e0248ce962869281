"""Opening the port of a server or a shard."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping

import pyarrow as pa

from embedding.kernel.errors import PlatformError
from embedding.kernel.ports import bracketed
from embedding.server.config import ServerConfig
from embedding.server.flight.credentials import Credentials
from embedding.server.flight.shell import ControlCall, Conversation, FlightService, Served


def listen(
    config: ServerConfig,
    state: Served,
    controls: Mapping[str, ControlCall],
    session: Callable[[], Conversation],
    credentials: Credentials,
    what: str = "setting port",
) -> FlightService:
    """Serve where the settings say; PlatformError, which names `what`, when that cannot be."""
    scheme = "grpc+tcp" if config.tls_cert is None else "grpc+tls"
    location = f"{scheme}://{bracketed(config.host)}:{config.port}"
    try:
        return FlightService(location, state, controls, credentials=credentials, session=session)
    except (pa.ArrowException, OSError) as error:
        why = _why_closed(config.host, config.port)
        raise PlatformError(
            f"port {config.port} of {config.host} ({what}): it cannot be opened: {why}."
        ) from error


def _why_closed(host: str, port: int) -> str:
    """What the system says about listening there; gRPC keeps it to itself."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.bind(address)
    except OSError as error:
        return str(error.strerror)
    return "another process may have had it"
