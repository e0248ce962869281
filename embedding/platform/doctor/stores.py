"""Can what is kept be used? Permissions, certificates, databases, a restore that was cut off."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import sqlalchemy as sa
from cryptography import x509
from sqlalchemy.engine import make_url

from embedding.backup.staging import unfinished
from embedding.crawl.frontier import Frontier
from embedding.database.postgres import check_database as check_postgres
from embedding.database.postgres import postgres_engine, shown
from embedding.kernel.records import SnapshotRef
from embedding.platform.doctor.diagnosis import Diagnosis, fine, warn, wrong
from embedding.platform.notes import lacking_windows

_SOON = timedelta(days=30)
_PATIENCE_S = 10
_MOST_NAMED = 3


def check_home(home: Path) -> Iterator[Diagnosis]:
    """Whether it is one's own, and nobody else's."""
    if not home.is_dir():
        yield fine(f"{home} is not there yet; `yeoron up` makes it.")
        return
    if unfinished(home):
        yield wrong(f"A restore into {home} was cut off.", "Run the same `yeoron restore` again.")
    others, foreign = [], []
    for path in (home, *home.iterdir(), *(home / "secrets").rglob("*")):
        status = path.lstat()
        if status.st_uid != os.geteuid():
            foreign.append(path)
        if status.st_mode & 0o077 and (path == home or path.is_relative_to(home / "secrets")):
            others.append(path)
    if foreign:
        yield wrong(
            f"{_named(foreign)}: not of the user who runs this (id {os.geteuid()}).",
            f"chown -R to that user: {home}",
        )
    if others:
        yield wrong(f"{_named(others)}: other users can look into it.", f"chmod -R go= {home}")
    if not foreign and not others:
        yield fine(f"{home} is its owner's alone.")


def _named(paths: Sequence[Path]) -> str:
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return ", ".join(str(path) for path in paths[:_MOST_NAMED]) + more


def check_certificates(
    files: Mapping[str, Path], *, now: datetime | None = None
) -> Iterator[Diagnosis]:
    """Dates of certificates by what they are for."""
    today = datetime.now(UTC) if now is None else now
    good = 0
    for what, path in files.items():
        try:
            certificate = x509.load_pem_x509_certificate(path.read_bytes())
        except OSError as error:
            yield wrong(f"{what}: {path}: {error.strerror}.", "Set it to a PEM certificate.")
            continue
        except ValueError:
            yield wrong(f"{what}: {path} is no PEM certificate.", "Put a whole one there.")
            continue
        until = certificate.not_valid_after_utc
        shown = f"{what}: {path} is valid until {until:%Y-%m-%d}"
        if today < certificate.not_valid_before_utc:
            yield wrong(f"{what}: {path} is not valid yet.", "Look at the clock, or make another.")
        elif today > until:
            yield wrong(f"{shown}.", "Make another; that of Dask is made by `yeoron up`.")
        elif until - today < _SOON:
            yield warn(f"{shown}.", "Make another in time.")
        else:
            good += 1
    if good == len(files):
        count = "1 certificate is" if good == 1 else f"{good} certificates are"
        yield fine(f"{count} valid." if files else "No certificate is set.")


def check_database(part: str, address: str) -> Iterator[Diagnosis]:
    """Whether it answers, is whole, holds every text, and can be written."""
    url = make_url(address)
    if url.get_backend_name() != "sqlite":
        yield from _postgres(part, url)
    elif url.database in (None, "", ":memory:") or not Path(str(url.database)).exists():
        yield fine(f"{part}: {url.database} is not there yet; it is made when it is needed.")
    else:
        yield from _sqlite(part, Path(str(url.database)))


def _sqlite(part: str, file: Path) -> Iterator[Diagnosis]:
    if not os.access(file, os.W_OK) or not os.access(file.parent, os.W_OK):
        yield wrong(f"{part}: {file} cannot be written.", "Give it to the user who runs Yeoron.")
        return
    engine = sa.create_engine(f"sqlite:///{file}", poolclass=sa.NullPool)
    try:
        with engine.connect() as connection:
            verdict = connection.execute(sa.text("PRAGMA quick_check(1)")).scalar_one()
    except sa.exc.SQLAlchemyError as error:
        yield wrong(
            f"{part}: {file} cannot be read ({type(error.__cause__ or error).__name__}).",
            "Put back a backup of it, or move it away to begin without it.",
        )
        return
    if verdict != "ok":
        yield wrong(f"{part}: {file} is damaged.", "Put back a backup of it.")
    else:
        yield fine(f"{part}: {file} is whole.")


def _postgres(part: str, url: sa.URL) -> Iterator[Diagnosis]:
    """Raises ConfigError where it cannot be used."""
    check_postgres(url.render_as_string(hide_password=False), part, dry=True)
    with postgres_engine(url, poolclass=sa.NullPool).connect() as connection:
        late = connection.execute(sa.text("SELECT extract(epoch FROM now())")).scalar_one()
    ahead = float(late) - datetime.now(UTC).timestamp()
    if abs(ahead) > _PATIENCE_S:
        yield warn(
            f"{part}: the clock of {shown(url)} is {ahead:+.0f} s from this machine's.",
            "Keep both right (NTP).",
        )
    yield fine(f"{part}: {shown(url)} answers and can be written.")


def check_windows(refs: Sequence[SnapshotRef]) -> Iterator[Diagnosis]:
    """Whether a snapshot lacks something of its window."""
    lacking = lacking_windows([ref.to_dict() for ref in refs])
    for sentence in lacking:
        yield warn(sentence, "`yeoron snapshot amend WINDOW`, while the platform runs.")
    if not lacking:
        yield fine(f"None of {len(refs):,} snapshots lacks anything of its window.")


def check_frontier(address: str, *, exists: bool) -> Iterator[Diagnosis]:
    """Whether this version can read it; a sentence of ConfigError otherwise."""
    if exists:
        Frontier(address).close()
        yield fine("The frontier is of this version.")
