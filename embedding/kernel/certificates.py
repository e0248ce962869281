"""Certificates that the platform makes for itself: self-signed, each its own authority."""

from __future__ import annotations

import ipaddress
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_HERE = ("127.0.0.1", "::1", "localhost")
"""Names of this machine for itself."""
_DAY = timedelta(days=1)
_LASTS = 3650 * _DAY
_RENEWED = 365 * _DAY


def make_certificate(
    folder: Path,
    name: str,
    *,
    names: tuple[str, ...] = _HERE,
    first: timedelta = -_DAY,
    last: timedelta = _LASTS,
    passphrase: bytes | None = None,
) -> tuple[Path, Path]:
    """Write NAME-cert.pem and NAME-key.pem (mode 600, P-256) into `folder`; their paths.

    names       hosts and addresses that it is for
    first last  it is valid from now + first to now + last
    passphrase  of the key; None: the key is not encrypted
    """
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + first)
        .not_valid_after(now + last)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    if names:
        shown = x509.SubjectAlternativeName([_general(each) for each in names])
        builder = builder.add_extension(shown, critical=False)
    cert = builder.sign(key, hashes.SHA256())
    lock = (
        serialization.NoEncryption()
        if passphrase is None
        else serialization.BestAvailableEncryption(passphrase)
    )
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    paths = _paths(folder, name)
    # The key first: a certificate that is there has its key.
    _write(paths[1], key.private_bytes(pem, pkcs8, lock))
    _write(paths[0], cert.public_bytes(pem))
    return paths


def ensure_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """The certificate of this machine in `folder`: made once, and replaced in its last year."""
    cert, key = _paths(folder, name)
    if cert.is_file() and key.is_file():
        found = x509.load_pem_x509_certificate(cert.read_bytes())
        if found.not_valid_after_utc > datetime.now(UTC) + _RENEWED:
            return cert, key
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return make_certificate(folder, name)


def _paths(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / f"{name}-cert.pem", folder / f"{name}-key.pem"


def _write(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(data)


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
