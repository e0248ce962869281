"""A disk that is full: what is there stays readable, the reason is told, and work goes on after."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from embedding.kernel import durable
from embedding.kernel.errors import ConfigError, PlatformError, UnavailableError
from embedding.server.config import ServerConfig
from embedding.server.ledger import sequence as journals
from embedding.server.ledger.sequence import Fences, Journal, read_journal
from embedding.server.parts import Content
from embedding.server.recovery.checkpoint import CheckpointFolder
from embedding.server.service import ParameterServer, running_server

NOBODY = np.array([], dtype=np.int64)


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """The system takes what fits and refuses the rest, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def full(*args: object) -> None:
    raise OSError(28, os.strerror(28))


def test_of_words_that_could_not_be_noted_nothing_stays_in_the_journal(tmp_path):
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.write(0, ["말"], NOBODY)
    with no_file_beyond(path.stat().st_size + 10), pytest.raises(UnavailableError, match="journal"):
        journal.write(1, ["글", "길"], NOBODY)
    journal.write(1, ["집"], NOBODY)
    journal.close()
    assert [(e.first, e.words) for e in read_journal(path)] == [(0, ["말"]), (1, ["집"])]


def test_a_life_that_could_not_be_noted_is_not_fenced_and_spoils_no_other(tmp_path):
    path = tmp_path / "fences.jsonl"
    fences = Fences(path)
    fences.add("a", "1")
    with (
        no_file_beyond(path.stat().st_size + 5),
        pytest.raises(UnavailableError, match=r"fences\.jsonl: .*arge.*: node a is not fenced now"),
    ):
        fences.add("a", "2")
    assert not fences.holds("a", "2")
    assert fences.add("b", "3")
    assert fences.add("a", "2")
    assert Fences(path).incarnations == {"a": ("1", "2"), "b": ("3",)}


def test_a_node_gets_its_words_once_there_is_room_and_they_keep_their_ids(
    tmp_path, connect, monkeypatch
):
    chosen = ServerConfig(min_count=1, state_dir=tmp_path / "state")
    tries = []

    def twice_full(file, line) -> None:
        tries.append(line)
        if len(tries) <= 2:
            full()
        durable.append(file, line)

    monkeypatch.setattr(journals, "append", twice_full)
    with running_server(chosen, dim=4) as server:
        ids = connect(server).words("말", "글")
        assert len(tries) == 3
        server.recovery._try_write = lambda: "killed"
    with running_server(chosen, dim=4) as server:
        assert connect(server).words("말", "글").tolist() == ids.tolist() == [0, 1]


def test_of_a_checkpoint_that_could_not_be_written_nothing_stays_and_the_reason_is_told(
    tmp_path, connect
):
    folder = CheckpointFolder(tmp_path / "alone", keep=2)
    rows = np.zeros((100_000, 4), dtype=np.float32)
    words = {"words": pa.table({"w": ["말"]})}
    folder.write(1, Content({}, {"rows": rows[:10]}, words))
    with no_file_beyond(500_000), pytest.raises(OSError, match="arge"):
        folder.write(2, Content({}, {"rows": rows}, words))
    assert sorted(each.name for each in folder.path.iterdir()) == ["checkpoint-00000001", "lock"]
    folder.close()

    with running_server(ServerConfig(min_count=1, state_dir=tmp_path / "state"), dim=4) as server:
        connect(server).words("말")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(CheckpointFolder, "_fill", full)
            failed = server.recovery.request(wait=True)
        assert "No space left on device" in failed
        assert "No space left on device" in server.ailing()[0]
        assert server.recovery.request(wait=True) is None
        assert server.ailing() == []


def test_no_copy_of_the_tables_is_left_where_not_even_a_file_can_be_made(
    tmp_path, connect, monkeypatch
):
    """It would follow every change of the tables from then on, and so would the next ones."""
    with running_server(ServerConfig(min_count=1, state_dir=tmp_path / "state"), dim=4) as server:
        connect(server).words("말")
        monkeypatch.setattr("embedding.server.recovery.restoring.Journal", full)
        assert "No space left" in server.recovery.request(wait=True)
        assert server.state.tables.watchers == []
        monkeypatch.undo()


def test_a_server_that_cannot_write_to_its_folder_says_so(tmp_path, monkeypatch):
    chosen = ServerConfig(state_dir=tmp_path / "state")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(PlatformError, match=r"state_dir .*state: No space left on device\.$"):
        ParameterServer(chosen, dim=4)
    monkeypatch.undo()
    epoch = Path(chosen.state_dir) / "epoch"
    epoch.write_text("?")
    with pytest.raises(ConfigError, match="a whole number is expected"):
        ParameterServer(chosen, dim=4)
    epoch.unlink()
    with running_server(chosen, dim=4):
        pass


@pytest.mark.parametrize("where", ["sync", "prune"])
def test_after_a_checkpoint_that_failed_at_its_end_the_next_is_written(
    tmp_path, connect, monkeypatch, where: str
):
    """It has its name by then, which no other can take."""
    chosen = ServerConfig(min_count=1, state_dir=tmp_path / "state").model_copy(
        update={"keep_checkpoints": 1}
    )
    with running_server(chosen, dim=4) as server:
        node = connect(server)
        node.words("말")
        assert server.recovery.request(wait=True) is None
        node.words("글")
        with monkeypatch.context() as patch:
            if where == "prune":
                patch.setattr(Path, "unlink", full)
            else:
                patch.setattr("embedding.server.recovery.checkpoint.sync", unless_folder)
            failed = server.recovery.request(wait=True)
        assert (failed is None) == (where == "prune"), "what is too old may stay"
        node.words("집")
        assert server.recovery.request(wait=True) is None
    with running_server(chosen, dim=4) as server:
        assert connect(server).words("말", "글", "집").tolist() == [0, 1, 2]


def unless_folder(path: Path) -> None:
    if path.name == "state":
        full()
    durable.sync(path)


def test_the_name_of_a_new_journal_is_on_the_disk_before_words_are_noted(tmp_path, monkeypatch):
    """Synced alone, a new file may be gone after the power failed: nothing points to it."""
    synced = []
    monkeypatch.setattr(durable, "sync", synced.append)
    journal, fences = Journal(tmp_path / "journal"), Fences(tmp_path / "fences.jsonl")
    assert synced == [tmp_path]
    assert fences.add("a", "1")
    assert synced == [tmp_path, tmp_path]
    assert fences.add("a", "2")
    Journal(tmp_path / "journal").close()
    assert synced == [tmp_path, tmp_path], "once is enough"
    journal.close()
