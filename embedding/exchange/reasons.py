"""Why a server could not be reached, in words a person can act on."""

from __future__ import annotations

import errno

_KNOWN = (
    ("not in peer certificate", "its certificate is not for this address (subjectAltName)"),
    ("certificate has expired", "its certificate has expired"),
    ("certificate verify failed", "its certificate is not signed by the authority in tls_ca"),
    ("wrong version number", "it does not speak TLS there; try grpc://"),
    ("certificate required", "it asks for a client's certificate (tls_cert, tls_key)"),
    ("Connection refused", "nothing listens there"),
    ("address lookup failed", "no machine of that name is known"),
    ("Could not default verify", "tls_ca is needed for grpc+tls://"),
    ("Deadline Exceeded", "it did not answer in time"),
    ("Socket closed", "it closed the connection, as a server with TLS does to grpc://"),
)


def why_away(error: BaseException) -> str:
    """A short reason; the kind of the error where nothing better is known."""
    text = str(error)
    for sign, reason in _KNOWN:
        if sign in text:
            return reason
    if isinstance(error, OSError) and error.errno in errno.errorcode:
        return str(error.strerror)
    return type(error).__name__
