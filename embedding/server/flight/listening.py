"""Opening the port of a server or a shard."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping

import psutil
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


logger = logging.getLogger(__name__)

_GRACE_S = 0.2
_TIMEOUT_S = 15.0


def end(server: FlightService) -> bool:
    """Shut the server down, hanging up on clients after a moment's grace; False if it stuck.

    Flight's `shutdown` waits until every client has closed its streams, which an idle or stopped
    client may never do, and offers no time limit. So the server's ends of its connections are shut
    down beneath it, as if the network had failed: clients are built to come through that.
    """
    port = server.port
    ending = threading.Thread(target=server.shutdown, name="flight-shutdown", daemon=True)
    ending.start()
    ending.join(_GRACE_S)
    deadline = time.monotonic() + _TIMEOUT_S
    while ending.is_alive() and time.monotonic() < deadline:
        hang_up(port)
        ending.join(0.1)
    if ending.is_alive():
        logger.warning("streams on port %d did not end within %.0f s", port, _TIMEOUT_S)
    return not ending.is_alive()


def hang_up(port: int) -> int:
    """Shut down this process's connections that were accepted on `port`; returns how many."""
    ended = 0
    for connection in psutil.Process().net_connections(kind="tcp"):
        local = connection.laddr
        if not local or local.port != port or connection.status != psutil.CONN_ESTABLISHED:
            continue
        try:
            with socket.socket(fileno=os.dup(connection.fd)) as copy:
                copy.shutdown(socket.SHUT_RDWR)
            ended += 1
        except OSError:
            logger.debug("a connection on port %d had ended already", port)
    return ended
