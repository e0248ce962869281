"""Taking a word or a source out of what MLflow keeps in a home, and runs that are old.

Models of runs are copies of snapshots and change as those do. Pictures of a run that held it go.
MLflow's server must not be running where a word or a source is taken out.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import sqlalchemy as sa
from sqlalchemy.engine import make_url

from embedding.evaluation import registry, runs
from embedding.kernel.durable import replaced
from embedding.snapshots import erasing
from embedding.snapshots.format import MANIFEST, VECTORS, parse_manifest

_ARTIFACTS = "artifacts"
_PLOTS = "plots"


def erase(
    home: Path,
    database: str,
    *,
    word: str | None = None,
    source: str | None = None,
    dry: bool = False,
) -> int:
    """Take a word or a source out of models, manifests, tags and figures; how many models held it.

    home      folder of MLflow's artifacts
    database  SQLAlchemy address of its tables
    """
    models = 0
    for folder in _models(home):
        if not dry:
            erasing.sweep(folder.parent)
        if not erasing.holds(folder, word=word, source=source):
            continue
        models += 1
        if dry:
            continue
        _drop_plots(home, folder)
        erasing.erase(folder, word=word, source=source)
    if source is not None and not dry:
        for path in (home / _ARTIFACTS).rglob(MANIFEST):
            if (path.parent / VECTORS).exists():
                continue
            manifest = parse_manifest(path.read_text(encoding="utf-8"), str(path))
            if source in {*manifest.tokens, *manifest.documents}:
                changed = manifest.model_copy(update=erasing.counts_without(manifest, source))
                with replaced(path) as file:
                    file.write(changed.to_json().encode())
        _tags(database, source)
    return models


def pinned(tracking_uri: str, model_name: str) -> frozenset[str]:
    """Ids of the snapshots that an alias names. PlatformError when MLflow cannot be asked."""
    client = runs.connect(tracking_uri)
    with runs.reported(tracking_uri):
        named = [registry.holder(client, model_name, a) for a in (registry.NEWEST, registry.BEST)]
    return frozenset(str(v.tags.get(registry.SNAPSHOT)) for v in named if v is not None)


def remove_runs(
    tracking_uri: str,
    home: Path,
    *,
    experiment: str,
    model_name: str,
    before: float,
    keep: frozenset[str],
    dry: bool = False,
) -> int:
    """Remove runs of snapshots that ended before a time (Unix seconds), with their models and
    files; how many. Those of the snapshots in `keep` stay.
    """
    client = runs.connect(tracking_uri)
    removed = 0
    with runs.reported(tracking_uri):
        place = client.get_experiment_by_name(experiment)
        query = f"tags.`{runs.KIND}` = 'snapshot' and attributes.end_time < {int(before * 1000)}"
        old = [] if place is None else client.search_runs([place.experiment_id], query)
        for run in old:
            if run.data.tags.get(runs.KEY) in keep:
                continue
            removed += 1
            if dry:
                continue
            for version in client.search_model_versions(f"run_id = '{run.info.run_id}'"):
                client.delete_model_version(model_name, version.version)
            files = _local(home, str(run.info.artifact_uri))
            if files is not None:
                shutil.rmtree(files, ignore_errors=True)
            client.delete_run(run.info.run_id)
    return removed


def _models(home: Path) -> Iterator[Path]:
    root = home / _ARTIFACTS
    for whole in list(root.rglob(f"{erasing.WHOLE}*")):
        erasing.finish(whole.parent)
    for path in sorted(root.rglob(VECTORS)):
        hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
        if not hidden and (path.parent / MANIFEST).is_file():
            yield path.parent


def _drop_plots(home: Path, folder: Path) -> None:
    for parent in folder.parents:
        if parent == home:
            return
        if (parent / _PLOTS).is_dir():
            shutil.rmtree(parent / _PLOTS)
            return


def _tags(address: str, source: str) -> None:
    """Take a source out of the database's tags, parameters and figures."""
    url = make_url(address)
    if url.get_backend_name() == "sqlite" and not Path(str(url.database)).is_file():
        return
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        existing = set(sa.inspect(connection).get_table_names())
        for name in existing & {"tags", "model_version_tags", "params"}:
            _values_without(connection, _table(connection, name), source)
        for name in existing & {"metrics", "latest_metrics"}:
            _figures_without(connection, _table(connection, name), source)
    if engine.dialect.name == "sqlite":
        # What was deleted stays in free pages of the file until it is written again.
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(sa.text("VACUUM"))


def _table(connection: sa.Connection, name: str) -> sa.Table:
    return sa.Table(name, sa.MetaData(), autoload_with=connection)


def _values_without(connection: sa.Connection, table: sa.Table, source: str) -> None:
    holding = table.c.value.contains(source, autoescape=True)
    for row in connection.execute(sa.select(table).where(holding)).mappings().fetchall():
        this = sa.and_(*(column == row[column] for column in table.primary_key.columns))
        value = _value_without(str(row[table.c.value]), source)
        connection.execute(sa.update(table).where(this).values(value=value))


def _figures_without(connection: sa.Connection, table: sa.Table, source: str) -> None:
    ends = (runs.metric_name(f".{source}"), f"/{source}")
    names = [str(row.key) for row in connection.execute(sa.select(table.c.key).distinct())]
    gone = [name for name in names if name.endswith(ends)]
    connection.execute(sa.delete(table).where(table.c.key.in_(gone)))


def _value_without(value: str, source: str) -> str:
    """A list of sources, or an object by source, without one; any other text as it is."""
    try:
        parsed = json.loads(value)
    except ValueError:
        return ",".join(name for name in value.split(",") if name != source)
    if not isinstance(parsed, dict):
        return value
    rest = {name: figure for name, figure in parsed.items() if name != source}
    return json.dumps(rest, ensure_ascii=False)


def _local(home: Path, uri: str) -> Path | None:
    """The folder of a run's artifacts in this home; None when they lie elsewhere."""
    parts = urlsplit(uri)
    root = (home / _ARTIFACTS).resolve()
    if parts.scheme == "mlflow-artifacts":
        path = root / parts.path.lstrip("/")
    elif parts.scheme in ("", "file"):
        path = Path(parts.path)
    else:
        return None
    path = path.resolve()
    return path if path.is_relative_to(root) and path != root else None
