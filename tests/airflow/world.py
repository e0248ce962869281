"""A small world for DAG runs: settings, dated files to play, a parameter server, a Dask cluster."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

SYLLABLES = "가나다라마바사아자차카타파하거너더러머버서어저처커터퍼허"
DIM = 16


def documents(seed: int, count: int, start: datetime, days: int) -> list[dict[str, str]]:
    """Dated lines of invented Korean words, sorted by time; each document has one of six topics.

    So there is something to learn: a model of words by chance passes no gate.
    """
    rng = random.Random(seed)
    words = ["".join(rng.sample(SYLLABLES, 2)) for _ in range(120)]
    step = timedelta(days=days) / count
    lines = []
    for i in range(count):
        topic = words[i % 6 :: 6]
        text = ". ".join(" ".join(rng.choices(topic, k=8)) for _ in range(6))
        date = (start + i * step).isoformat()
        lines.append({"date": date, "title": f"제목 {seed} {i}", "text": text})
    return lines


def write_sources(folder: Path, *, pass_on: bool = False) -> Path:
    """Two groups of sources; the second one has nothing after February.

    pass_on: both have a document after each window, so that a run waits for no silent source.
    """
    february, march = datetime(2020, 2, 1, tzinfo=UTC), datetime(2020, 3, 1, 1, tzinfo=UTC)
    files = {
        "hani": documents(1, 60, february, 28) + documents(3, 5, march, 2),
        "board": documents(2, 40, february, 27),
    }
    if pass_on:
        files["hani"] += documents(4, 1, march + timedelta(days=31), 1)
        files["board"] += documents(5, 1, march, 1)
    tables = []
    for (name, lines), group in zip(files.items(), ("뉴스", "게시판"), strict=True):
        path = folder / f"{name}.jsonl"
        text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
        path.write_text(text + "\n", encoding="utf-8")
        tables.append(
            f'[[source]]\nname = "{name}"\nkind = "replayed"\ngroup = "{group}"\n'
            f'path = "{path.name}"\nevery = 1.0\n'
        )
    sources = folder / "sources.toml"
    sources.write_text("\n".join(tables), encoding="utf-8")
    return sources


def write_settings(folder: Path, **sections: dict[str, Any]) -> Path:
    """A settings file; values as TOML understands JSON's."""
    given: dict[str, dict[str, Any]] = {
        "paths": {"home": str(folder / "var"), "sources": str(folder / "sources.toml")},
        "cluster": {"nodes": 1},
        "text": {"tokenizer": "whitespace"},
        "model": {"dim": DIM},
        "node": {"flush_seconds": 0.3},
        "exchange": {"connect_timeout_s": 60.0},
        "evaluation": {
            "tracking_uri": f"sqlite:///{folder / 'mlflow.db'}",
            "gold": [str(folder / "no-such-gold.txt")],
        },
    }
    for name, values in sections.items():
        given.setdefault(name, {}).update(values)
    path = folder / "yeoron.toml"
    lines = []
    for name, values in given.items():
        lines.append(f"[{name}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@contextmanager
def dask_cluster(folder: Path) -> Iterator[tuple[int, int]]:
    """A Dask cluster with one worker that takes one node; ports of scheduler and dashboard.

    Its certificate lies where settings that `write_settings` writes into `folder` look for it.
    """
    from distributed import LocalCluster

    from embedding.cluster import dask_security
    from embedding.kernel.certificates import ensure_certificate
    from embedding.settings import Settings

    here = Settings(paths={"home": folder / "var"})
    ensure_certificate(here.paths.secrets, "dask")
    cluster = LocalCluster(
        n_workers=1,
        threads_per_worker=2,
        processes=False,
        protocol="tls",
        security=dask_security(here),
        host="127.0.0.1",
        scheduler_port=0,
        dashboard_address="127.0.0.1:0",
        resources={"node": 1},
    )
    try:
        port = int(cluster.scheduler_address.rsplit(":", 1)[1])
        yield port, int(cluster.dashboard_link.split(":")[2].split("/")[0])
    finally:
        cluster.close(timeout=120)


def content(path: Path) -> bytes:
    """A file's bytes, read by another process.

    Closing a file of SQLite's gives up all locks that this process holds on it (POSIX), and then
    another process may remove the log of a database that is open here.
    """
    return subprocess.run(["cat", "--", str(path)], check=True, capture_output=True).stdout
