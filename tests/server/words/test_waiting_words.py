"""Words without a row stand on no disk; they are known again when they come with their text."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from named import named

from embedding.kernel.errors import ConfigError
from embedding.kernel.records import Window
from embedding.server.config import ServerConfig
from embedding.server.recovery.checkpoint import _digest
from embedding.server.service import running_server
from embedding.server.words.digests import WordDigests
from embedding.snapshots.store import SnapshotStore

DIM = 4
NAME = "홍길동"
DAY = Window(datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 2, tzinfo=UTC))


def config(tmp_path: Path) -> ServerConfig:
    return ServerConfig(
        state_dir=tmp_path / "state",
        snapshots=str(tmp_path / "store"),
        min_count=2,
        min_authors=1,
        min_sources=1,
        checkpoint_every_s=600.0,
    )


def on_disk(folder: Path) -> bytes:
    """All bytes under a folder, and those of Arrow columns, which may be packed."""
    found = b""
    for path in folder.rglob("*"):
        if path.is_file():
            held = path.read_bytes()
            found += held
            if held.startswith(b"ARROW1"):
                with pa.memory_map(str(path)) as source:
                    found += str(pa.ipc.open_file(source).read_all().to_pydict()).encode()
    return found


def read_once(tmp_path: Path, connect) -> None:
    """말 gets a row and is read twice; the name is read once, in the same window."""
    with running_server(config(tmp_path), dim=DIM) as server:
        node = connect(server)
        node.words("말", counts=3)
        node.push(counts=named(["말", NAME], 1))
        node.push(counts=named(["말"], 1))


def test_no_waiting_word_is_on_the_disk_and_the_key_is_the_owners_alone(tmp_path, connect):
    read_once(tmp_path, connect)
    held = on_disk(tmp_path)
    assert "말".encode() in held, "the look finds what is there"
    assert NAME.encode() not in held
    assert NAME.encode("utf-16-le") not in held
    key = tmp_path / "state" / "waiting.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_a_waiting_word_is_counted_on_and_its_window_has_all_of_it(tmp_path, connect):
    read_once(tmp_path, connect)
    read_once_more = config(tmp_path)
    with running_server(read_once_more, dim=DIM) as server:
        node = connect(server)
        assert server.status()["candidates"] == 1
        assert node.words(NAME, counts=1).tolist() == [1], "the count before the restart is known"
        node.push(counts=named([NAME], 4))
        assert NAME.encode() not in on_disk(tmp_path / "state" / "checkpoint-00000001")
        server.snapshotter.cut(DAY)
    snapshot = SnapshotStore(str(tmp_path / "store")).open("latest")
    counts = dict(zip(snapshot.by_source.words, snapshot.by_source.counts.tolist(), strict=True))
    assert counts == {"말": 2, NAME: 5}
    assert len(snapshot.by_source.words) == 2


def test_a_word_that_waits_over_two_restarts_is_still_known(tmp_path, connect):
    read_once(tmp_path, connect)
    with running_server(config(tmp_path), dim=DIM) as server:
        connect(server).push(counts=named(["다른"], 1))
    assert NAME.encode() not in on_disk(tmp_path)
    with running_server(config(tmp_path), dim=DIM) as server:
        node = connect(server)
        assert server.status()["candidates"] == 2
        node.words(NAME, counts=1)
        server.snapshotter.cut(DAY)
    snapshot = SnapshotStore(str(tmp_path / "store")).open("latest")
    assert NAME in snapshot.by_source.words


def change_facts(state: Path, change: Callable[[dict], None]) -> None:
    """Change what the newest checkpoint says."""
    file = max(state.glob("checkpoint-*")) / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    del manifest["digest"]
    change(manifest)
    file.write_text(json.dumps({**manifest, "digest": _digest(manifest)}), encoding="utf-8")


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (2, "format 2 is not known.* open it once with Yeoron of 30 November 2026"),
        (99, "format 99 is of a newer version"),
    ],
)
def test_another_format_is_refused(tmp_path, connect, found, why):
    read_once(tmp_path, connect)
    change_facts(tmp_path / "state", lambda manifest: manifest["facts"].update(format=found))
    with pytest.raises(ConfigError, match=why), running_server(config(tmp_path), dim=DIM):
        pass


def test_a_checkpoint_of_format_3_opens_under_its_former_names(tmp_path, connect):
    """Windows, snapshots, counts and event times, as the tree of 30 November wrote them."""
    read_once(tmp_path, connect)

    def former(manifest: dict) -> None:
        facts = manifest["facts"]
        facts |= {"format": 3, "cut": [*facts.pop("closed_windows"), 86_400], "amendable": {}}
        del facts["revisable"], facts["split"]
        facts["closed"] = facts.pop("snapshots") | {"1970-01-02": {"start": "1970-01-02"}}
        facts["weight"] = facts.pop("decay_weight")
        facts["published"] = facts.pop("event_times") | {"뉴스": 5.0}
        del facts["readers_of"]
        facts["reading"] = {"뉴스": {"heard": {"n9": 4.0}, "pending": {"n9": 2}}}

    change_facts(tmp_path / "state", former)
    with running_server(config(tmp_path), dim=DIM) as server:
        accounts = server.state.accounts
        assert 86_400 in accounts.cut
        assert "1970-01-02" in accounts.closed
        source = accounts.tracker.sources["뉴스"]
        assert (source.heard, source.pending) == ({"n9": 4.0}, {"n9": 2})
        node = connect(server)
        node.push(counts=named(["말"], 1))
        assert node.words(NAME, counts=1).tolist() == [1]
    newest = max((tmp_path / "state").glob("checkpoint-*"))
    written = json.loads((newest / "manifest.json").read_text(encoding="utf-8"))
    assert written["facts"]["format"] == 4
    assert written["facts"]["closed_windows"] == [86_400]


@pytest.mark.parametrize("facts", [{"usage": [[0, "뉴스", 1.0]]}, {"shifts": [0]}])
def test_use_as_it_was_kept_before_27_november_is_refused(tmp_path, connect, facts):
    read_once(tmp_path, connect)
    former = {"format": 2, **facts}
    change_facts(tmp_path / "state", lambda manifest: manifest["facts"].update(former))
    with (
        pytest.raises(ConfigError, match="open it once with Yeoron of 30 November"),
        running_server(config(tmp_path), dim=DIM),
    ):
        pass


def test_without_its_key_what_waits_begins_from_nothing(tmp_path, connect):
    read_once(tmp_path, connect)
    (tmp_path / "state" / "waiting.key").unlink()
    with running_server(config(tmp_path), dim=DIM) as server:
        assert connect(server).words(NAME, counts=1).tolist() == [-1]


@pytest.mark.parametrize("text", ["", "abc", "00" * 31, "zz" * 32])
def test_what_is_no_key_is_refused(tmp_path, connect, text):
    read_once(tmp_path, connect)
    (tmp_path / "state" / "waiting.key").write_text(text, encoding="utf-8")
    with (
        pytest.raises(ConfigError, match="64 hex digits"),
        running_server(config(tmp_path), dim=DIM),
    ):
        pass


def test_digests_depend_on_word_and_key():
    one = WordDigests(b"a" * 32)
    assert one.of("말") == WordDigests(b"a" * 32).of("말") != one.of("글")
    assert one.of("말") != WordDigests(b"b" * 32).of("말")
    assert WordDigests().of("말") != WordDigests().of("말")
    assert len(one.of("\ud800")) == 8
