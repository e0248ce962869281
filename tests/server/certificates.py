"""Certificates and secrets as a user makes them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

from embedding.kernel import certificates

DAY = dt.timedelta(days=1)


def make_certificate(folder: Path, name: str = "yeoron", **made: Any) -> tuple[Path, Path]:
    """A self-signed certificate that is valid for 90 days: (cert, key)."""
    return certificates.make_certificate(folder, name, **{"last": 90 * DAY, **made})


def make_token(folder: Path, text: str = "secret-word") -> Path:
    """A file with a secret that only its owner reads."""
    path = folder / f"token-{abs(hash(text)) % 10**6}"
    path.write_text(text + "\n", encoding="utf-8")
    path.chmod(0o600)
    return path
