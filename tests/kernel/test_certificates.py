"""Certificates that the platform makes for itself."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from embedding.kernel.certificates import ensure_certificate, make_certificate


def test_it_is_made_once_and_its_key_is_its_owners_alone(tmp_path: Path) -> None:
    cert, key = ensure_certificate(tmp_path / "new", "dask")
    first = cert.read_bytes(), key.read_bytes()
    assert ensure_certificate(tmp_path / "new", "dask") == (cert, key)
    assert (cert.read_bytes(), key.read_bytes()) == first
    assert key.stat().st_mode & 0o777 == 0o600


def test_one_that_ends_soon_or_has_no_key_is_made_anew(tmp_path: Path) -> None:
    cert, key = make_certificate(tmp_path, "dask", last=timedelta(days=30))
    old = cert.read_bytes()
    ensure_certificate(tmp_path, "dask")
    renewed = cert.read_bytes()
    assert renewed != old
    key.unlink()
    ensure_certificate(tmp_path, "dask")
    assert key.is_file()
    assert cert.read_bytes() != renewed
