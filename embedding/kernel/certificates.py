"""Certificates that the platform makes for itself: an authority, and those that it signs."""

from __future__ import annotations

import ipaddress
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

from embedding.kernel.errors import PlatformError

_HERE = ("127.0.0.1", "::1", "localhost")
"""Names of this machine for itself."""
_DAY = timedelta(days=1)
_PEM = serialization.Encoding.PEM
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
    key, who, now = ec.generate_private_key(ec.SECP256R1()), _called(name), datetime.now(UTC)
    valid = (now + first, now + last)
    cert = _certificate(key.public_key(), who, names, valid, who, key, authority=True)
    lock = (
        serialization.NoEncryption()
        if passphrase is None
        else serialization.BestAvailableEncryption(passphrase)
    )
    paths = _paths(folder, name)
    # The key first: a certificate that is there has its key.
    _write(paths[1], key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, lock))
    _write(paths[0], cert)
    return paths


def ensure_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """The certificate of this machine in `folder`: made once, and replaced in its last year."""
    cert, key = _paths(folder, name)
    if cert.is_file() and key.is_file():
        certificate = x509.load_pem_x509_certificate(cert.read_bytes())
        if certificate.not_valid_after_utc > datetime.now(UTC) + _RENEWED:
            return cert, key
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return make_certificate(folder, name)


def new_request(name: str) -> tuple[str, str]:
    """A new key (PEM, not encrypted) and the request to sign it for `name`, PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    built = x509.CertificateSigningRequestBuilder().subject_name(_called(name))
    request = built.sign(key, hashes.SHA256()).public_bytes(_PEM)
    return _unlocked(key).decode("ascii"), request.decode("ascii")


def sign_request(request: str, authority: tuple[Path, Path], names: tuple[str, ...] = ()) -> str:
    """The certificate for a request, PEM: its key and its name, and nothing else of it.

    authority  certificate and key
    names      hosts and addresses as which its owner may serve

    Raises ValueError where the request is none.
    """
    asked = x509.load_pem_x509_csr(request.encode("ascii"))
    if not asked.is_signature_valid:
        raise ValueError("the request is not signed by its own key")
    named = asked.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    who = str(named[0].value) if named else "host"
    return _issue(asked.public_key(), who, names, authority).decode("ascii")


def ensure_issued(
    folder: Path, name: str, authority: tuple[Path, Path], names: tuple[str, ...]
) -> tuple[Path, Path]:
    """A certificate of the authority for `names` in `folder`, and its key.

    It is kept while it is this authority's, for these names, and not in its last year.
    """
    cert, key = _paths(folder, name)
    shown = x509.SubjectAlternativeName([_general(each) for each in names])
    if cert.is_file() and key.is_file():
        certificate = x509.load_pem_x509_certificate(cert.read_bytes())
        alternative = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        late = certificate.not_valid_after_utc <= datetime.now(UTC) + _RENEWED
        if alternative.value == shown and not late and _signed(certificate, authority[0]):
            return cert, key
    made = ec.generate_private_key(ec.SECP256R1())
    _write(key, _unlocked(made))
    _write(cert, _issue(made.public_key(), name, names, authority))
    return cert, key


def _issue(
    key: CertificatePublicKeyTypes, who: str, names: tuple[str, ...], authority: tuple[Path, Path]
) -> bytes:
    parent = x509.load_pem_x509_certificate(authority[0].read_bytes())
    signer = serialization.load_pem_private_key(authority[1].read_bytes(), password=None)
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise PlatformError(f"{authority[1]}: it is not a key that the platform made.")
    now = datetime.now(UTC)
    valid = (now - _DAY, min(now + _LASTS, parent.not_valid_after_utc))
    return _certificate(key, _called(who), names, valid, parent.subject, signer, authority=False)


def _certificate(
    key: CertificatePublicKeyTypes,
    who: x509.Name,
    names: tuple[str, ...],
    valid: tuple[datetime, datetime],
    issuer: x509.Name,
    signer: ec.EllipticCurvePrivateKey,
    *,
    authority: bool,
) -> bytes:
    """PEM; authority: whether it may sign others."""
    builder = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(valid[0])
        .not_valid_after(valid[1])
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if names:
        shown = x509.SubjectAlternativeName([_general(each) for each in names])
        builder = builder.add_extension(shown, critical=False)
    return builder.sign(signer, hashes.SHA256()).public_bytes(_PEM)


def _signed(certificate: x509.Certificate, authority: Path) -> bool:
    try:
        certificate.verify_directly_issued_by(
            x509.load_pem_x509_certificate(authority.read_bytes())
        )
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _called(name: str) -> x509.Name:
    # X.509 has names of 64 characters at most.
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name[:64])])


def _unlocked(key: ec.EllipticCurvePrivateKey) -> bytes:
    pkcs8 = serialization.PrivateFormat.PKCS8
    return key.private_bytes(_PEM, pkcs8, serialization.NoEncryption())


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
