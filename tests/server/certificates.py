"""Certificates and secrets as a user makes them."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

DAY = dt.timedelta(days=1)


def make_certificate(
    folder: Path,
    name: str = "yeoron",
    *,
    names: tuple[str, ...] = ("127.0.0.1", "::1", "localhost"),
    first: dt.timedelta = -DAY,
    last: dt.timedelta = 90 * DAY,
    passphrase: bytes | None = None,
) -> tuple[Path, Path]:
    """A self-signed certificate for `names`, valid from now + first to now + last: (cert, key)."""
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
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
        shown = [_general(each) for each in names]
        builder = builder.add_extension(x509.SubjectAlternativeName(shown), critical=False)
    cert = builder.sign(key, hashes.SHA256())
    paths = folder / f"{name}-cert.pem", folder / f"{name}-key.pem"
    paths[0].write_bytes(cert.public_bytes(serialization.Encoding.PEM))
    lock = (
        serialization.NoEncryption()
        if passphrase is None
        else serialization.BestAvailableEncryption(passphrase)
    )
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)
    )
    paths[1].chmod(0o600)
    return paths


def make_token(folder: Path, text: str = "secret-word") -> Path:
    """A file with a secret that only its owner reads."""
    path = folder / f"token-{abs(hash(text)) % 10**6}"
    path.write_text(text + "\n", encoding="utf-8")
    path.chmod(0o600)
    return path


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
