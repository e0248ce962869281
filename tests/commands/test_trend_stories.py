"""`yeoron trends stories`: what happened, for a person and as JSON."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from embedding.snapshots.evidence import EVIDENCE_SCHEMA, EvidenceStore
from embedding.snapshots.store import SnapshotStore

PLANTED = {"코로나", "신천지", "마스크", "도배"}


@pytest.fixture
def home(planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A platform's folder: snapshots, and addresses of documents of the last window."""
    monkeypatch.setenv("YEORON_PATHS__HOME", str(tmp_path))
    store = planted.make_store(str(tmp_path / "snapshots"), planted.Plan(fillers=150))
    window = store.open().manifest.window
    rows = [
        ("코로나", "both", 4), ("신천지", "both", 4), ("코로나", "one", 9), ("마스크", "other", 20),
    ]  # fmt: skip
    times = [window.start.timestamp() + 86_400 * day for *_, day in rows]
    table = pa.table(
        {
            "word": [word for word, *_ in rows],
            "source": ["뉴스"] * len(rows),
            "day": [int(when // 86_400) for when in times],
            "hash": list(range(len(rows))),
            "url": [f"https://news.example/{name}" for _, name, _ in rows],
            "published": times,
        },
        schema=EVIDENCE_SCHEMA,
    )
    EvidenceStore(tmp_path / "evidence").add(table, "node-1")
    return tmp_path


def test_all_that_was_planted_is_in_one_of_the_stories(yeoron, home) -> None:
    done = yeoron("trends", "stories", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    words = {each["word"] for one in found["stories"] for each in one["words"]}
    assert words >= PLANTED
    assert len(words) <= len(PLANTED) + 1, "one of twenty findings may be chance"
    assert found["snapshot"]["label"] == "2020-02"
    urls = {url for one in found["stories"] for url in one["addresses"]}
    assert urls <= {f"https://news.example/{name}" for name in ("both", "one", "other")}
    with_covid = next(
        one for one in found["stories"] if "코로나" in {each["word"] for each in one["words"]}
    )
    assert with_covid["addresses"][0] == "https://news.example/both"
    assert datetime.fromisoformat(with_covid["first_day"]).day == 5


def test_a_person_reads_titles_roles_days_and_addresses(yeoron, home) -> None:
    done = yeoron("trends", "stories")
    assert done.code == 0, done.err
    assert done.out.startswith("stories · 2020-02 against 2020-01")
    assert "changed in meaning: 코로나" in done.out
    assert "new: 신천지" in done.out
    assert "more often: " in done.out
    assert "https://news.example/both" in done.out
    assert "since 2020-02; written 2020-02-05" in done.out
    one = yeoron("trends", "stories", "-n", "1").out
    assert one.count("\n1. ") == 1
    assert "\n2. " not in one


def test_another_store_has_no_addresses_and_nothing_that_happened_is_said(
    yeoron, home, planted, tmp_path
) -> None:
    done = yeoron("trends", "stories", "--snapshots", home / "snapshots", "--json")
    assert all(one["addresses"] == [] for one in json.loads(done.out)["stories"])
    plan = planted.Plan(windows=3, fillers=150, moved={}, born={}, risen={}, lone={})
    quiet = planted.make_store(str(tmp_path / "quiet"), plan)
    done = yeoron("trends", "stories", "--snapshots", quiet.uri)
    assert done.code == 0, done.err
    assert "Nothing stands out" in done.out
    assert done.out.splitlines()[-1].startswith(("No window", "The last window"))


def test_an_empty_store_is_one_sentence(yeoron, tmp_path) -> None:
    done = yeoron("trends", "stories", "--snapshots", SnapshotStore(tmp_path / "none").uri)
    assert done.code == 2
    assert len(done.err.strip().splitlines()) == 1
