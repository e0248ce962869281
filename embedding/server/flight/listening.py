"""Opening the port of a server or a shard."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import psutil
import pyarrow as pa

from embedding.exchange.localsocket import answers, socket_path
from embedding.kernel.errors import PlatformError
from embedding.kernel.ports import REACHED, bracketed
from embedding.server.config import ServerConfig
from embedding.server.flight.credentials import Credentials
from embedding.server.flight.shell import ControlCall, Conversation, FlightService, Served

logger = logging.getLogger(__name__)


def listen(
    config: ServerConfig,
    state: Served,
    controls: Mapping[str, ControlCall],
    session: Callable[[], Conversation],
    credentials: Credentials,
    what: str = "setting port",
) -> FlightService:
    """Serve where the settings say; PlatformError, which names `what`, when that cannot be.

    With TLS, clients of this machine and user are served by a Unix socket, too.
    """
    scheme = "grpc+tcp" if config.tls_cert is None else "grpc+tls"
    location = f"{scheme}://{bracketed(config.host)}:{config.port}"
    serve = partial(FlightService, state=state, controls=controls, session=session)
    try:
        service = serve(location, credentials=credentials)
    except (pa.ArrowException, OSError) as error:
        why = _why_closed(config.host, config.port)
        raise PlatformError(
            f"port {config.port} of {config.host} ({what}): it cannot be opened: {why}."
        ) from error
    if credentials.pair is not None:
        host = REACHED.get(config.host, config.host)
        path = socket_path(host, service.port)
        # Another's that answers is of a server behind the same address in another network.
        if path is not None and not answers(path):
            plain = replace(credentials, pair=None, client_ca=None)
            try:
                path.unlink(missing_ok=True)  # of a server that was killed: the port is ours now
                service.beside = serve(f"grpc+unix://{path}", credentials=plain)
            except (pa.ArrowException, OSError) as error:
                logger.warning("%s: no socket, the port alone is open: %s", path, error)
    return service


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


_GRACE_S = 0.2
_TIMEOUT_S = 15.0


def end(server: FlightService) -> bool:
    """Shut the server down, hanging up on clients after a moment's grace; False if it stuck.

    Flight's `shutdown` waits until every client has closed its streams, which an idle or stopped
    client may never do, and offers no time limit. So the server's ends of its connections are shut
    down beneath it, as if the network had failed: clients are built to come through that.
    """
    done = server.beside is None or end(server.beside)
    ending = threading.Thread(target=server.shutdown, name="flight-shutdown", daemon=True)
    ending.start()
    ending.join(_GRACE_S)
    deadline = time.monotonic() + _TIMEOUT_S
    while ending.is_alive() and time.monotonic() < deadline:
        hang_up(server.path or server.port)
        ending.join(0.1)
    if ending.is_alive():
        logger.warning("streams on %s did not end within %.0f s", server.address, _TIMEOUT_S)
    return done and not ending.is_alive()


def hang_up(at: int | str) -> int:
    """Shut down this process's connections that were accepted on a port, or on a Unix socket's
    path; returns how many."""
    ended = 0
    for connection in psutil.Process().net_connections(kind="all"):
        accepted = str(connection.laddr) == at  # the path of a Unix socket
        if connection.status == psutil.CONN_ESTABLISHED:
            accepted = connection.laddr.port == at
        if not accepted:
            continue
        try:
            with socket.socket(fileno=os.dup(connection.fd)) as copy:
                copy.shutdown(socket.SHUT_RDWR)
            ended += 1
        except OSError:
            logger.debug("a connection on %s had ended already", at)
    return ended
