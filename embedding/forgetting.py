"""Forgetting on request, and by age: a composition of every room that keeps something.

Each step can be done twice, and leaves its store whole when it is killed: the same call goes on.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from embedding.cluster import has_frontier
from embedding.crawl.addresses import canonical
from embedding.crawl.rewinding import block, erase_address, erase_before, erase_source
from embedding.evaluation import erasing as mlflow
from embedding.exchange.peer import ask
from embedding.kernel.errors import ConfigError, InputError, UnavailableError
from embedding.server.recovery.rewriting import erase_state, put_aside
from embedding.server.rowstore import RowShape
from embedding.settings import Settings
from embedding.show.team import TeamStore
from embedding.snapshots.evidence import EvidenceStore, page_of
from embedding.snapshots.store import SnapshotStore
from embedding.trends import storage
from embedding.web.headlines import HeadlineStore

_DAY = 86_400.0


@dataclass(frozen=True)
class ErasureRequest:
    """What is to be forgotten: one of a source, an address, a word."""

    source: str | None = None
    address: str | None = None
    word: str | None = None

    def __post_init__(self) -> None:
        given = [value for value in (self.source, self.address, self.word) if value is not None]
        if len(given) != 1 or not given[0].strip():
            raise InputError("forget: one of --source, --address and --word is needed.")
        if self.address is not None and urlsplit(self.address).scheme not in ("http", "https"):
            raise InputError(
                f"forget: {self.address[:120]!r} is no address of a page; one that begins with "
                "http:// or https:// is accepted."
            )


def forget(settings: Settings, request: ErasureRequest, *, dry: bool = False) -> list[str]:
    """Take it out of every store; a sentence for each, and what a model still holds.

    dry  only say what would be done

    Raises ConfigError while the server runs, and YeoronError for a store that cannot be changed.
    """
    paths, verb = settings.paths, "would be" if dry else "were"
    word, source = request.word, request.source
    page = None if request.address is None else page_of(canonical(request.address))
    if not dry:
        _refuse_a_server_elsewhere(settings)
    # First, since a store that cannot be read is refused before anything is changed.
    holding = [
        (name, store, store.holding(word=word, source=source))
        for name, store in (_stores(settings) if page is None else ())
    ]
    done = [] if page is not None else _in_checkpoints(settings, request, verb, dry=dry)
    done.append(_in_frontier(settings, request, verb, dry=dry))
    n = EvidenceStore(paths.evidence).erase(word=word, source=source, page=page, dry=dry)
    done.append(f"Evidence: {n:,} addresses of documents {verb} removed.")
    headlines = HeadlineStore(settings.page.headlines_file)
    team = settings.page.team
    if word is not None and team is not None and (n := TeamStore(team).erase(word, dry=dry)):
        done.append(f"The team's words and notes: {n:,} {verb} removed.")
    if n := headlines.erase(word=word, source=source, page=page, dry=dry):
        done.append(f"Headlines: {n:,} {verb} removed.")
    if paths.trends.is_dir():
        n = storage.erase(paths.trends, word or source or page or "", dry=dry)
        done.append(
            f"Trend reports: {n} {verb} removed; they can be made again from their snapshots."
        )
    for name, store, ids in holding:
        if not dry:
            store.erase(ids, word=word, source=source)
            store.sweep()
        done.append(f"{name}: {len(ids)} {verb} changed; they keep their ids.")
    if page is None:
        tables = settings.database_address("mlflow")
        n = mlflow.erase(paths.mlflow, tables, word=word, source=source, dry=dry)
        done.append(f"MLflow: {n} models {verb} changed, and pictures of their runs removed.")
        if settings.evaluation.tracking_uri:
            done.append("MLflow: what lies at evaluation.tracking_uri is not changed.")
    return done + _remains(request, versions="://" in settings.snapshot_store)


def _in_checkpoints(
    settings: Settings, request: ErasureRequest, verb: str, *, dry: bool
) -> list[str]:
    if settings.hosts.server:
        return [
            f"Checkpoints: they lie on the host {settings.hosts.server}; call the same there, too."
        ]
    server, model = settings.server, settings.model
    own = {
        "state_dir": settings.state_folder,
        "config_digest": server.config_digest or settings.digest(),
    }
    shape = RowShape(model.width, seed=model.seed, buckets=model.gram_rows, biases=model.biases)
    erased = erase_state(
        server.model_copy(update=own),
        settings.sync,
        shape,
        word=request.word,
        source=request.source,
        dry=dry,
    )
    if request.word is not None:
        where = "had a row" if erased.row else "waited for a row" if erased.waiting else "was not"
        done = [f"Checkpoints: the word {where} in the server's state."]
    else:
        done = ["Checkpoints: counts of the source in open windows and its figures."]
    if erased.copies:
        done.append(f"{len(erased.copies)} states that rollbacks put aside {verb} removed.")
    return done


def _in_frontier(settings: Settings, request: ErasureRequest, verb: str, *, dry: bool) -> str:
    frontier = settings.database_address("frontier")
    if request.word is not None or not has_frontier(settings):
        return "Frontier: nothing of it is kept there."
    if request.source is not None:
        n = erase_source(frontier, request.source, dry=dry)
        if not dry:
            block(frontier, request.source, "forgotten on request")
        return (
            f"Frontier: {n:,} addresses {verb} removed. The source is blocked; take it out of the "
            "sources file too."
        )
    n = erase_address(frontier, str(request.address), dry=dry)
    return (
        f"Frontier: what was kept of {n:,} addresses {verb} removed. The address itself stays as "
        "one that is not read again."
    )


def _refuse_a_server_elsewhere(settings: Settings) -> None:
    """ConfigError while the server of another host answers: it would publish the word again."""
    if not settings.hosts.server:
        return
    try:
        ask(settings.server_location, settings.line(operator=True), "status")
    except UnavailableError:
        return
    raise ConfigError(
        f"forget: the server on the host {settings.hosts.server} is running; stop it first with "
        "`yeoron down` there."
    )


def _stores(settings: Settings) -> list[tuple[str, SnapshotStore]]:
    """Stores with snapshots of the platform, and how a sentence calls them."""
    home = str(settings.paths.snapshots)
    stores = [("Snapshots", SnapshotStore(home))]
    if settings.snapshot_store != home:
        where = settings.snapshot_store
        stores.append((f"Snapshots in {where}", SnapshotStore(where)))
    return stores


def _remains(request: ErasureRequest, *, versions: bool) -> list[str]:
    """What is not taken out, in plain sentences; `versions`: a bucket may keep old ones."""
    sentences = []
    if request.word is not None:
        sentences.append(
            "The word's own row is gone and it gets none again. Rows of other words were trained "
            "beside it and still hold a trace of that, which nobody can read back as text."
        )
    else:
        sentences.append(
            "Rows of words were trained on its text too. They hold a trace of it, which nobody can "
            "read back as text; `yeoron rollback` learns again without it."
        )
    if request.address is not None:
        sentences.append("Counts of words hold what its text added to them; they name no document.")
    if versions and request.address is None:
        sentences.append(
            "A bucket that keeps versions, or uploads that were cut off, has them until a rule of "
            "its own removes them."
        )
    sentences.append(
        "Airflow's database and logs may hold names of sources and addresses (`airflow db clean`). "
        "Copies that you made, exports and backups are yours to change."
    )
    return sentences


def retain(settings: Settings, *, now: float | None = None, dry: bool = False) -> list[str]:
    """Remove what is older than `retention` says; a sentence for each store.

    dry  only say what would be done
    """
    ages, paths = settings.retention, settings.paths
    now = time.time() if now is None else now
    done: list[str] = []
    verb = "would be" if dry else "were"

    def step(days: float, what: str, do: Callable[[float], int]) -> None:
        if days:
            done.append(f"{what}: {do(now - days * _DAY):,} {verb} removed.")

    frontier, evidence = settings.database_address("frontier"), EvidenceStore(paths.evidence)
    step(
        ages.evidence_days,
        "Evidence, addresses of documents",
        lambda before: evidence.erase(
            until=int(settings.server.calendar.days(np.array([before]))[0]), dry=dry
        ),
    )
    headlines = HeadlineStore(settings.page.headlines_file)
    if headlines.path.is_file():
        step(ages.evidence_days, "Headlines", lambda time: headlines.erase(before=time, dry=dry))
    step(
        ages.frontier_days,
        "Frontier, addresses",
        lambda before: erase_before(frontier, before, dry=dry) if has_frontier(settings) else 0,
    )
    step(
        ages.reports_days,
        "Trend reports",
        lambda before: storage.expire(paths.trends, before, dry=dry),
    )
    states, logs = put_aside(settings.state_folder), paths.logs.rglob("*")
    step(ages.copies_days, "States put aside", partial(_old, states, dry=dry))
    step(ages.logs_days, "Log files", partial(_old, filter(Path.is_file, logs), dry=dry))
    if ages.snapshots_days:
        uri, wanted = _tracking(settings), settings.evaluation
        keep = mlflow.pinned(uri, wanted.model_name) if uri else frozenset[str]()
        for name, store in _stores(settings):
            step(ages.snapshots_days, name, partial(_old_snapshots, store, keep=keep, dry=dry))
        if uri:
            step(
                ages.snapshots_days,
                "MLflow's runs",
                lambda before: mlflow.remove_runs(
                    uri,
                    paths.mlflow,
                    experiment=wanted.experiment,
                    model_name=wanted.model_name,
                    before=before,
                    keep=keep,
                    dry=dry,
                ),
            )
    return (done or ["Nothing is removed by age: all of `retention` is 0."]) + evidence.refused()


def _tracking(settings: Settings) -> str:
    """Address of MLflow's store, its database where no other is set; "": there is none."""
    if settings.evaluation.tracking_uri:
        return settings.tracking_address
    address = settings.database_address("mlflow")
    exists = not address.startswith("sqlite") or settings.sqlite_file("mlflow").is_file()
    return address if exists else ""


def _old_snapshots(store: SnapshotStore, before: float, *, keep: frozenset[str], dry: bool) -> int:
    old = store.expire(before, keep, dry=dry)
    if not dry:
        store.sweep(before)
    return len(old)


def _old(paths: Iterable[Path], before: float, *, dry: bool) -> int:
    """Remove the files and folders that were last written before a time; how many."""
    old = [path for path in paths if path.stat().st_mtime < before]
    for path in () if dry else old:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return len(old)
