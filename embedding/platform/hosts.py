"""Other hosts of the platform: a joining file is traded once for a certificate.

The control host keeps the authority. `invite` writes a file with its address, the fingerprint of
the authority and a token; the host that joins knows the authority by that fingerprint before it
says anything. An invitation is taken by removing it, so that a token serves once. When it has
expired the control host's clock alone says: clocks of hosts may differ.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import logging
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from embedding.exchange.token import private
from embedding.kernel.certificates import (
    ensure_certificate,
    ensure_issued,
    new_request,
    sign_request,
)
from embedding.kernel.config import Config, explain
from embedding.kernel.errors import ConfigError, PlatformError, YeoronError
from embedding.kernel.private import ensure_secret, private_folder
from embedding.settings import PathsConfig, Settings

logger = logging.getLogger(__name__)

_MOST_BYTES = 64 * 1024
_SECONDS = 15.0
_REFUSED = {
    403: "its token is unknown or was used before",
    410: "its token has expired",
}


class JoiningFile(Config):
    """What a host needs to join; secret until it is used."""

    role: Literal["node"] = "node"
    """What the host does: node runs Dask workers, and nodes on them."""
    address: str
    """Address of the control host."""
    port: int = Field(ge=1, le=65535)
    """Port of the door there."""
    authority: str = Field(pattern=r"^[0-9a-f]{64}$")
    """SHA-256 of the authority's certificate (DER), hex."""
    token: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Good once, and until it expires."""


class JoinedHost(Config):
    """What a home that has joined remembers, in `secrets/host.json`."""

    role: Literal["node"]
    """As in the joining file."""
    address: str
    """Address of this host, at which the control host reaches it."""
    scheduler: str
    """Dask's scheduler, tls://HOST:PORT."""


def joined_host(paths: PathsConfig) -> JoinedHost | None:
    """What this home is to a control host; None where it has not joined one."""
    try:
        return JoinedHost.model_validate_json(paths.joined_host.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise ConfigError(
            f"{paths.joined_host}: cannot be read; remove it and join again with a new file."
        ) from error


def ensure_authority(settings: Settings) -> None:
    """The platform's certificates in `secrets`; where other hosts may join, the server's too."""
    paths = settings.paths
    private_folder(paths.secrets)
    cert, _ = own = ensure_certificate(paths.secrets, "dask")
    if not settings.hosts.address:
        return
    paths.authority.unlink(missing_ok=True)
    ensure_secret(paths.authority, cert.read_text("ascii"))
    ensure_issued(paths.secrets, "server", own, (settings.hosts.address, "127.0.0.1", "localhost"))


def require_shared(settings: Settings, frontier: str) -> None:
    """ConfigError where nodes of several hosts could not share the frontier."""
    if settings.hosts.address and not frontier.startswith("postgresql"):
        raise ConfigError(
            f"hosts.address {settings.hosts.address}: nodes of other hosts cannot open a frontier "
            "in a SQLite file; a PostgreSQL address is accepted (crawl.frontier)."
        )


def invite(settings: Settings, hours: float, role: Literal["node"] = "node") -> JoiningFile:
    """A new invitation, good once and for so many hours; ConfigError where nobody can join."""
    if not settings.hosts.address:
        raise ConfigError(
            "invite: other hosts do not reach this one; set hosts.address to its address, and "
            "start the platform with it."
        )
    ensure_authority(settings)
    token = secrets.token_hex(32)
    held = {"role": role, "expires": time.time() + hours * 3600}
    ensure_secret(_invitation(settings.paths, token), json.dumps(held))
    return JoiningFile(
        role=role,
        address=settings.hosts.address,
        port=settings.hosts.port,
        authority=_fingerprint(ssl.PEM_cert_to_DER_cert(settings.paths.authority.read_text())),
        token=token,
    )


def read_joining_file(path: Path) -> JoiningFile:
    """The file; ConfigError in a sentence when it is none, or everybody can read it."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"--join {path}: {error.strerror}.") from error
    private(path, "--join")
    try:
        return JoiningFile.model_validate_json(data)
    except ValidationError as error:
        raise ConfigError(explain(error, f"--join {path}", JoiningFile)) from error


def join(settings: Settings, file: JoiningFile) -> JoinedHost:
    """Trade the token for this home's certificate; writes all of it, or nothing."""
    paths = settings.paths
    if joined_host(paths) is not None:
        raise ConfigError(
            f"--join: {paths.home} has joined already; `yeoron up` without --join starts it."
        )
    if paths.dask_certificate[0].exists():
        raise ConfigError(
            f"--join: {paths.home} is the home of a platform of its own; an empty home is accepted "
            "(paths.home)."
        )
    private_folder(paths.home)
    private_folder(paths.secrets)
    key, request = new_request(socket.gethostname())
    answer, address = _trade(file, request)
    host = JoinedHost(role=file.role, address=address, scheduler=answer["scheduler"])
    cert_file, key_file = paths.dask_certificate
    for path, text in (
        (key_file, key),
        (cert_file, answer["certificate"]),
        (paths.authority, answer["authority"]),
        (paths.node_token, answer["node_token"]),
        # Last: it says that the others are there.
        (paths.joined_host, host.model_dump_json()),
    ):
        path.unlink(missing_ok=True)
        ensure_secret(path, text)
    return host


def _trade(file: JoiningFile, request: str) -> tuple[dict[str, str], str]:
    """What the door answers, and the address of this host on the way there."""
    where = f"--join: the control host at {file.address}:{file.port}"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # known by its fingerprint, before the token is sent
    connection = http.client.HTTPSConnection(
        file.address, file.port, timeout=_SECONDS, context=context
    )
    try:
        connection.connect()
        wire = connection.sock
        if _fingerprint(wire.getpeercert(binary_form=True) or b"") != file.authority:
            raise ConfigError(
                f"{where} has another authority than the file names; ask for a new file."
            )
        own = str(wire.getsockname()[0])
        connection.request("POST", "/join", json.dumps({"token": file.token, "request": request}))
        answer = connection.getresponse()
        body = answer.read(_MOST_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise PlatformError(
            f"{where} does not answer ({error}); the file is good for another try."
        ) from error
    finally:
        connection.close()
    if answer.status in _REFUSED:
        raise ConfigError(
            f"{where} refuses the file: {_REFUSED[answer.status]}; ask for a new one."
        )
    if answer.status != http.client.OK:
        raise PlatformError(f"{where} answered {answer.status}; the log of its door says why.")
    found: dict[str, str] = json.loads(body)
    return found, own


class Door:
    """Answers hosts that join, over TLS with the authority's own certificate."""

    def __init__(self, settings: Settings) -> None:
        """Listens from now on; `port` is its port."""
        self._settings = settings
        self._lock = threading.Lock()
        door = self

        class Handler(BaseHTTPRequestHandler):
            timeout = _SECONDS

            def do_POST(self) -> None:
                """Only /join, and only little."""
                status, answer = door.answer(self.path, self._body())
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def _body(self) -> bytes:
                length = self.headers.get("Content-Length", "")
                if not length.isdecimal() or int(length) > _MOST_BYTES:
                    return b""
                return self.rfile.read(int(length))

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Log a request as the platform logs."""
                logger.info("%s: %s", self.client_address[0], format % args)

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*settings.paths.dask_certificate)
        self._server = _Listening(settings.hosts.address, settings.hosts.port, Handler, context)
        self.port = int(self._server.server_address[1])

    def serve_forever(self) -> None:
        """Until `close`."""
        self._server.serve_forever()

    def close(self) -> None:
        """Answer nobody any more."""
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, body: bytes) -> tuple[int, Mapping[str, str]]:
        """Status and JSON for one request; a good token is used up."""
        try:
            asked = json.loads(body)
            token, request = str(asked["token"]), str(asked["request"])
        except (ValueError, KeyError, TypeError):
            return 400, {}
        if path != "/join":
            return 404, {}
        paths = self._settings.paths
        invitation = _invitation(paths, token)
        try:
            expires = float(json.loads(invitation.read_bytes())["expires"])
            if time.time() > expires:
                return 410, {}
            certificate = sign_request(request, paths.dask_certificate)
            node_token = paths.node_token.read_text("ascii")
            with self._lock:
                invitation.unlink()
        except FileNotFoundError as error:
            return (503 if error.filename == str(paths.node_token) else 403), {}
        except (ValueError, OSError, YeoronError) as error:
            logger.warning("a host could not join: %s", error)
            return 400, {}
        return 200, {
            "authority": paths.authority.read_text("ascii"),
            "certificate": certificate,
            "node_token": node_token,
            "scheduler": self._settings.dask_url,
        }


class _Listening(ThreadingHTTPServer):
    """TLS begins in the thread of a connection: one that says nothing holds up nobody else."""

    daemon_threads = True

    def __init__(
        self, host: str, port: int, handler: type[BaseHTTPRequestHandler], context: ssl.SSLContext
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._context = context
        super().__init__((host, port), handler)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """The handshake first, within the time that a request has."""
        try:
            request.settimeout(_SECONDS)
            wrapped = self._context.wrap_socket(request, server_side=True)
        except OSError as error:
            logger.info("%s: %s", client_address[0], error)
            self.shutdown_request(request)
            return
        super().process_request_thread(wrapped, client_address)


def _invitation(paths: PathsConfig, token: str) -> Path:
    """The file of an invitation; its name tells nobody the token."""
    return paths.secrets / "invitations" / hashlib.sha256(token.encode()).hexdigest()


def _fingerprint(der: bytes) -> str:
    return hashlib.sha256(der).hexdigest()
