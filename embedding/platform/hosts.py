"""Other hosts of the platform: a joining file is traded once for a certificate.

The control host keeps the authority. `invite` writes a file with its address, the fingerprint of
the authority and a token; the host that joins knows the authority by that fingerprint before it
says anything. Taking an invitation removes it, so a token works once. The clock of the control host
alone decides whether it has expired, as clocks of hosts may differ.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import secrets
import socket
import ssl
import time
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from embedding.exchange.token import private
from embedding.kernel.certificates import ensure_certificate, ensure_issued, new_request
from embedding.kernel.config import Config, explain
from embedding.kernel.errors import ConfigError, PlatformError
from embedding.kernel.private import ensure_secret, private_folder
from embedding.settings import PathsConfig, Settings

JOINING_BYTES = 64 * 1024
"""Of a request to join, and of its answer."""
DOOR_SECONDS = 15.0
"""For which both sides of the door wait for each other."""
_REFUSED = {
    403: "its token is unknown or was used before",
    410: "its token has expired",
}


Role = Literal["node", "server"]
"""What a host that joins does: `node` runs Dask workers, and nodes on them; `server` runs the
parameter server with its shards."""


class JoiningFile(Config):
    """What a host needs to join; secret until it is used."""

    role: Role = "node"
    """What the host does."""
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

    role: Role
    """As in the joining file."""
    address: str
    """Address of this host when it joined, at which the control host reaches it."""
    scheduler: str
    """Dask's scheduler, tls://HOST:PORT."""
    control: str = ""
    """Address of the control host; empty in homes that joined before evidence was delivered."""
    port: int = 0
    """Port of the door there."""


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


def address_now(host: JoinedHost) -> str:
    """Address of this host on the way to its control host; as it joined where there is no way.

    A pod, or a machine with DHCP, comes back with another one. That of a server is the control
    host's setting, which its certificate names.
    """
    if host.role == "server" or not host.control:
        return host.address
    try:
        addresses = socket.getaddrinfo(host.control, host.port, type=socket.SOCK_DGRAM)
        family, kind, protocol, _, resolved = addresses[0]
        with socket.socket(family, kind, protocol) as way:
            way.connect(resolved)  # a datagram socket: nothing is sent
            return str(way.getsockname()[0])
    except OSError:
        return host.address


def ensure_authority(settings: Settings) -> None:
    """The platform's certificates in `secrets`: the authority's, which Dask shows; the server's."""
    paths = settings.paths
    private_folder(paths.secrets)
    cert, _ = own = ensure_certificate(paths.secrets, "dask")
    if settings.hosts.server:
        # The server would make them; here they are handed to it.
        ensure_tokens(paths)
    paths.authority.unlink(missing_ok=True)
    ensure_secret(paths.authority, cert.read_text("ascii"))
    names = tuple(name for name in (settings.hosts.address, "127.0.0.1", "localhost") if name)
    ensure_issued(paths.secrets, "server", own, names)


def ensure_tokens(paths: PathsConfig) -> tuple[Path, Path]:
    """The files of the tokens that nodes and operators show to this platform's server."""
    files = (paths.node_token.resolve(), paths.operator_token.resolve())
    for path in files:
        ensure_secret(path, secrets.token_hex(32) + "\n")
    return files


def on_its_host(settings: Settings) -> Settings:
    """The settings of a home that has joined, with the address of its host; else as they are."""
    host = joined_host(settings.paths)
    if host is None:
        return settings
    hosts = settings.hosts.model_copy(update={"address": host.address, "server": ""})
    return settings.model_copy(update={"hosts": hosts})


def require_shared(settings: Settings, frontier: str) -> None:
    """ConfigError where several hosts could not share the frontier, or the snapshots."""
    if settings.hosts.server and "://" not in settings.snapshot_store:
        raise ConfigError(
            f"hosts.server {settings.hosts.server}: the snapshots that it publishes in "
            f"{settings.snapshot_store} cannot be read here; an address that both hosts reach is "
            "accepted, as in s3://BUCKET/PATH (server.snapshots)."
        )
    if settings.hosts.address and not frontier.startswith("postgresql"):
        raise ConfigError(
            f"hosts.address {settings.hosts.address}: nodes of other hosts cannot open a frontier "
            "in a SQLite file; a PostgreSQL address is accepted (crawl.frontier)."
        )


def invite(settings: Settings, hours: float, role: Role = "node") -> JoiningFile:
    """A new invitation, good once and for so many hours; ConfigError where nobody can join."""
    if role == "server" and not settings.hosts.server:
        raise ConfigError(
            "invite --role server: the parameter server runs on this host; set hosts.server to the "
            "address of the host that is to run it, and start the platform with it."
        )
    if not settings.hosts.address:
        raise ConfigError(
            "invite: other hosts do not reach this one; set hosts.address to its address, and "
            "start the platform with it."
        )
    ensure_authority(settings)
    token = secrets.token_hex(32)
    content = {"role": role, "expires": time.time() + hours * 3600}
    ensure_secret(invitation_file(settings.paths, token), json.dumps(content))
    return JoiningFile(
        role=role,
        address=settings.hosts.address,
        port=settings.hosts.port,
        authority=fingerprint(ssl.PEM_cert_to_DER_cert(settings.paths.authority.read_text())),
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
    """Trade the token for this home's certificate; writes all of it, or nothing.

    A home that has joined takes a new one from the same control host, once that has a new
    authority (`yeoron rotate`).
    """
    paths = settings.paths
    before = joined_host(paths)
    if before is not None:
        _require_new_authority(paths, before, file)
    elif paths.dask_certificate[0].exists():
        raise ConfigError(
            f"--join: {paths.home} is the home of a platform of its own; an empty home is accepted "
            "(paths.home)."
        )
    private_folder(paths.home)
    private_folder(paths.secrets)
    key, request = new_request(socket.gethostname())
    answer, address = _trade(file, request)
    host = JoinedHost(
        role=file.role,
        address=answer.get("address", address),
        scheduler=answer["scheduler"],
        control=file.address,
        port=file.port,
    )
    serves = file.role == "server"
    cert_file, key_file = paths.server_certificate if serves else paths.dask_certificate
    written = {
        key_file: key,
        cert_file: answer["certificate"],
        paths.node_token: answer["node_token"],
    }
    if serves:
        written[paths.operator_token] = answer["operator_token"]
    # Last: they say that the others are there. Cut off before, the home can join once more.
    written[paths.authority] = answer["authority"]
    written[paths.joined_host] = host.model_dump_json()
    for path, text in written.items():
        path.unlink(missing_ok=True)
        ensure_secret(path, text)
    return host


def _require_new_authority(paths: PathsConfig, before: JoinedHost, file: JoiningFile) -> None:
    """ConfigError where a home that has joined has no need of the file, or no right to it."""
    if before.role != file.role or before.control not in {"", file.address}:
        raise ConfigError(
            f"--join: {paths.home} has joined {before.control} as a {before.role}, and the file "
            f"is of {file.address} for a {file.role}; an empty home is accepted (paths.home)."
        )
    authority = paths.authority.read_text("ascii") if paths.authority.is_file() else ""
    if authority and fingerprint(ssl.PEM_cert_to_DER_cert(authority)) == file.authority:
        raise ConfigError(
            f"--join: {paths.home} has joined already; `yeoron up` without --join starts it."
        )


def _trade(file: JoiningFile, request: str) -> tuple[dict[str, str], str]:
    """What the door answers, and the address of this host on the way there."""
    where = f"--join: the control host at {file.address}:{file.port}"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # known by its fingerprint, before the token is sent
    asked = json.dumps({"token": file.token, "request": request}).encode()
    try:
        answer = ask_door((file.address, file.port), context, file.authority, "/join", asked)
    except OSError as error:
        raise PlatformError(
            f"{where} does not answer ({error}); the file is good for another try."
        ) from error
    if answer is None:
        raise ConfigError(f"{where} has another authority than the file names; ask for a new file.")
    status, body, own = answer
    if status in _REFUSED:
        raise ConfigError(f"{where} refuses the file: {_REFUSED[status]}; ask for a new one.")
    if status != http.client.OK:
        raise PlatformError(f"{where} answered {status}; the log of its door says why.")
    given: dict[str, str] = json.loads(body)
    return given, own


def ask_door(
    door: tuple[str, int], context: ssl.SSLContext, authority: str, path: str, data: bytes
) -> tuple[int, bytes, str] | None:
    """Status and body of what a control host's door answers, and the address of this host on the
    way; None where it is not that of the authority, to which nothing is said. Raises OSError.
    """
    connection = http.client.HTTPSConnection(*door, timeout=DOOR_SECONDS, context=context)
    try:
        connection.connect()
        wire = connection.sock
        if fingerprint(wire.getpeercert(binary_form=True) or b"") != authority:
            return None
        own = str(wire.getsockname()[0])
        connection.request("POST", path, data)
        answer = connection.getresponse()
        return answer.status, answer.read(JOINING_BYTES), own
    except http.client.HTTPException as error:
        raise OSError(str(error) or type(error).__name__) from error
    finally:
        connection.close()


def invitation_file(paths: PathsConfig, token: str) -> Path:
    """The file of an invitation; its name tells nobody the token."""
    return paths.secrets / "invitations" / hashlib.sha256(token.encode()).hexdigest()


def fingerprint(der: bytes) -> str:
    """By which an authority's certificate is known: SHA-256, hex."""
    return hashlib.sha256(der).hexdigest()
