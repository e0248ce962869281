"""What proves who a server is and who may talk to it: read and checked before a port opens."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from embedding.exchange.token import private, read_file, read_token
from embedding.kernel.errors import ConfigError
from embedding.kernel.ports import is_loopback
from embedding.server.config import ServerConfig

if TYPE_CHECKING:  # most trainings are on loopback: they start without cryptography
    from cryptography import x509

_SOON = timedelta(days=14)


@dataclass(frozen=True)
class Credentials:
    """Secrets of a server, as bytes of PEM.

    token, operator_token  what nodes show, and what those show who change the training; None: the
                           server asks for none
    pair       certificate chain and private key; None: no TLS
    client_ca  authority whose certificates clients must show; None: they need none
    notes      sentences about what works now and may not be what is wanted
    """

    token: str | None = None
    operator_token: str | None = None
    pair: tuple[bytes, bytes] | None = None
    client_ca: bytes | None = None
    notes: tuple[str, ...] = ()


def read_credentials(config: ServerConfig) -> Credentials:
    """Token, certificate and key of the settings; ConfigError in a sentence for each bad file."""
    token, operator = (
        None if path is None else read_token(path)
        for path in (config.token_file, config.operator_token_file)
    )
    client_ca = None
    if config.tls_client_ca is not None:
        client_ca = read_file(config.tls_client_ca, "tls_client_ca")
        _certificates(client_ca, f"tls_client_ca {config.tls_client_ca}")
    if config.tls_cert is None or config.tls_key is None:
        return Credentials(token, operator, None, client_ca)
    pair, notes = read_pair(config.tls_cert, config.tls_key, config.host)
    return Credentials(token, operator, pair, client_ca, notes)


def read_pair(cert: Path, key: Path, host: str) -> tuple[tuple[bytes, bytes], tuple[str, ...]]:
    """tls_cert and tls_key as bytes of PEM, and what clients of `host` will object to.

    ConfigError where they cannot serve TLS, or everybody may read the key.
    """
    where = f"tls_cert {cert}"
    chain, secret = read_file(cert, "tls_cert"), read_file(key, "tls_key")
    leaf = _certificates(chain, where)[0]
    if _public(secret, key) != leaf.public_key():
        raise ConfigError(f"tls_key {key}: it is not the key of the certificate {cert}.")
    private(key, "tls_key")
    return (chain, secret), _notes(leaf, where, host)


def _certificates(data: bytes, where: str) -> list[x509.Certificate]:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificates(data)
    except ValueError as error:
        raise ConfigError(f"{where}: no certificate in PEM form is in it.") from error


def _public(key: bytes, path: Path) -> object:
    """The public half of a private key."""
    from cryptography.hazmat.primitives import serialization

    try:
        loaded = serialization.load_pem_private_key(key, password=None)
    except TypeError as error:
        raise ConfigError(
            f"tls_key {path}: the key is encrypted; one without a passphrase is accepted."
        ) from error
    except ValueError as error:
        raise ConfigError(f"tls_key {path}: no private key in PEM form is in it.") from error
    return loaded.public_key()


def _notes(leaf: x509.Certificate, where: str, host: str) -> tuple[str, ...]:
    """What clients will object to."""
    now = datetime.now(UTC)
    notes = []
    if leaf.not_valid_after_utc < now:
        notes.append(f"expired on {leaf.not_valid_after_utc:%Y-%m-%d}: clients will refuse it")
    elif leaf.not_valid_after_utc < now + _SOON:
        notes.append(f"expires on {leaf.not_valid_after_utc:%Y-%m-%d}")
    if leaf.not_valid_before_utc > now:
        notes.append(f"is not valid before {leaf.not_valid_before_utc:%Y-%m-%d}")
    if not _names(leaf, host):
        notes.append(
            f"does not name {host} (subjectAltName): clients that connect to that will refuse it"
        )
    return tuple(f"{where}: the certificate {note}." for note in notes)


def _names(leaf: x509.Certificate, host: str) -> bool:
    """Whether the certificate is for `host`, or `host` stands for every address."""
    from cryptography import x509

    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    hosts = names.get_values_for_type(x509.DNSName)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return any(_matches(name, host) for name in hosts)
    if address.is_unspecified or (
        is_loopback(host) and any(_matches(name, "localhost") for name in hosts)
    ):
        return True
    return address in names.get_values_for_type(x509.IPAddress)


def _matches(pattern: str, host: str) -> bool:
    """RFC 6125: a star stands for the first label alone."""
    if pattern.startswith("*."):
        return host.lower().partition(".")[2] == pattern[2:].lower()
    return host.lower() == pattern.lower()
