"""Checkpoints, restarts, kill -9: nothing is lost and nothing is applied twice."""

from __future__ import annotations

import json
import socket
import threading
from unittest.mock import patch

import numpy as np
import pytest
from named import named
from recovering import config, crash

from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import PullRequest, Push
from embedding.kernel.errors import ConfigError, PlatformError, RefusedError
from embedding.kernel.records import SourceProgress, Table
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.ledger.sequence import Journal, read_journal
from embedding.server.parts import Content
from embedding.server.recovery.checkpoint import CheckpointFolder
from embedding.server.service import ParameterServer, running_server
from serving import start_server
from waiting import until
from yeoron_lab.ports import lasting_port

DIM = 4


def ones(ids) -> tuple[RowDelta, ...]:
    ids = np.asarray(ids, dtype=np.int64)
    return (RowDelta(Table.OUT, ids, np.ones((len(ids), DIM), dtype=np.float32)),)


@pytest.mark.parametrize("optimizer", ["sum", "adagrad"])
def test_a_restarted_server_goes_on_where_it_stopped(tmp_path, connect, optimizer):
    chosen = config(tmp_path, optimizer=optimizer)
    with running_server(chosen, dim=DIM, seed=5) as server:
        node = connect(server)
        node.push(counts=named(["말", "글", "드문"], 1))
        ids = node.words("말", "글", counts=3)
        for _ in range(3):
            node.pull()
            node.push(ones(ids), named(["말"], 2))
        before = node.pull(contexts=ids)
        status = server.status()
        delta = node.client.vocabulary()
    with running_server(chosen, dim=DIM, seed=99) as server:
        node = connect(server)
        assert (node.sequence, node.clock) == (4, 4)
        after = node.pull(ids, ids)
        assert np.array_equal(before.rows[Table.IN], after.rows[Table.IN])
        assert np.array_equal(before.rows[Table.OUT], after.rows[Table.OUT])
        again = server.status()
        for name in ("tokens", "documents", "pushes", "vocabulary", "candidates", "windows"):
            assert again[name] == status[name], name
        assert again["epoch"] > status["epoch"]
        assert again["sources"]["뉴스"]["published_at"] == status["sources"]["뉴스"]["published_at"]
        fresh = node.client.vocabulary(delta.version)
        assert list(fresh.words) == ["말", "글"], "after a restart every word is told again"
        assert np.array_equal(fresh.counts, delta.counts)
        assert node.words("드문", counts=1).tolist() == [2], "candidates were kept"
        node.push(ones(ids))
        moved = node.pull(ids, ids).rows[Table.OUT] - after.rows[Table.OUT]
        assert moved[0, 0] == pytest.approx(1.0 if optimizer == "sum" else 0.5)


def test_a_node_that_has_not_come_since_a_restart_is_missed_since_then(tmp_path, connect):
    with running_server(config(tmp_path), dim=DIM) as server:
        node = connect(server)
        node.push(counts=named(["말"], 2))
        name = node.client.node
    with running_server(config(tmp_path), dim=DIM) as server:
        status = server.status()
        assert status["nodes"][name]["state"] == "gone"
        assert status["nodes"][name]["last_seen_s"] <= status["uptime_s"]


def test_pushes_after_the_last_checkpoint_are_sent_again_and_applied_once(tmp_path, connect):
    chosen = config(tmp_path)
    port = lasting_port()
    chosen = chosen.model_copy(update={"port": port})
    server = ParameterServer(chosen, dim=DIM)
    server.start()
    node = connect(server)
    ids = node.words("말", "글")
    for _ in range(3):
        node.pull()
        node.push(ones(ids), named(["말", "글"]))
    node.client.checkpoint()
    assert node.client.durable() == 3
    (late,) = node.words("나중").tolist()
    for _ in range(2):
        node.pull()
        node.push(ones([*ids, late]), named(["나중"]))
    assert len(node.client.log) == 2
    crash(server)
    with running_server(chosen, dim=DIM) as server:
        rows = node.pull(ids, np.array([*ids, late]))
        assert rows.rows[Table.OUT][:, 0].tolist() == [5, 5, 2]
        status = server.status()
        assert status["tokens"] == 3 * 2 + 2
        assert status["nodes"]["n0"]["sequence"] == 5
        assert node.words("나중").tolist() == [late], "the journal kept the word's id"
        node.push(ones(ids))
        node.client.checkpoint()
        assert node.client.durable() == 6
        assert len(node.client.log) == 0


def test_what_a_barrier_held_back_is_not_taken_for_applied(tmp_path, connect):
    chosen = config(tmp_path).model_copy(update={"port": lasting_port()})
    server = ParameterServer(chosen, SyncConfig(policy="bsp"), dim=DIM)
    server.start()
    one, two = connect(server, "n0"), connect(server, "n1")
    ids = one.words("말")
    one.pull()
    two.pull(ids)
    one.push(ones(ids), named(["말"]))
    one.client.checkpoint()
    assert one.client.durable() == 0
    crash(server)
    with running_server(chosen, SyncConfig(policy="bsp"), dim=DIM) as server:
        one.client.hello()
        two.client.hello()
        two.pull(ids)
        two.push(ones(ids), named(["말"]))
        rows = one.pull(ids, ids)
        assert rows.rows[Table.OUT][0, 0] == 2.0
        status = server.status()
        assert status["tokens"] == 2
        assert {name: each["tokens"] for name, each in status["nodes"].items()} == {
            "n0": 1,
            "n1": 1,
        }, "what was held back came again, and is counted once"


def test_what_a_policy_dropped_is_a_part_of_all_pushes_after_a_restart_too(tmp_path, connect):
    chosen = config(tmp_path).model_copy(update={"port": lasting_port()})
    sync = SyncConfig(policy="backup", backups=1)
    shown = []
    with running_server(chosen, sync, dim=DIM) as server:
        one, two = connect(server, "n0"), connect(server, "n1")
        ids = one.words("말")
        one.pull()
        two.pull(ids)
        one.push(ones(ids), named(["말"]))
        two.push(ones(ids), named(["말"]))  # too late: the clock is closed
        shown.append(server.status())
    with running_server(chosen, sync, dim=DIM) as server:
        shown.append(server.status())
    for status in shown:
        assert (status["pushes"], status["tokens"]) == (2, 2)
        assert (status["sync"]["dropped_pushes"], status["sync"]["dropped_tokens"]) == (1, 1)


def test_a_full_log_asks_for_a_checkpoint_and_goes_on(tmp_path, connect):
    few = ExchangeConfig().model_copy(update={"max_unconfirmed": 4})
    with running_server(config(tmp_path), dim=DIM) as server:
        node = connect(server, config=few)
        ids = node.words("말")
        for _ in range(20):
            node.pull()
            node.push(ones(ids))
            assert len(node.client.log) <= 4
        assert server.state.ledger.of("n0").durable >= 16


def test_a_server_that_lost_its_state_refuses_what_builds_on_it(tmp_path, connect):
    port = lasting_port()
    server = ParameterServer(config(tmp_path, port=port), dim=DIM)
    server.start()
    node = connect(server)
    ids = node.words("말")
    node.push(ones(ids))
    node.client.checkpoint()
    node.client.durable()
    node.push(ones(ids))
    crash(server)
    emptied = config(tmp_path / "other", port=port)
    with running_server(emptied, dim=DIM), pytest.raises(RefusedError, match="state folder"):
        node.push(ones(ids))


def test_the_newest_whole_checkpoint_is_taken(tmp_path, connect):
    chosen = config(tmp_path)
    with running_server(chosen, dim=DIM) as server:
        node = connect(server)
        ids = node.words("말")
        node.push(ones(ids))
        node.client.checkpoint()
        node.push(ones(ids))
        node.client.checkpoint()
        late = node.words("나중")
    state = tmp_path / "state"
    newest = sorted(state.glob("checkpoint-*"))[-1]
    rows = newest / "rows.out.npy"
    rows.write_bytes(rows.read_bytes()[:-1] + b"x")
    with running_server(chosen, dim=DIM) as server:
        node = connect(server)
        assert node.sequence in (1, 2)
        assert server.state.ledger.of("n0").durable == node.sequence
        assert np.array_equal(node.words("나중"), late)
    for manifest in state.glob("checkpoint-*/manifest.json"):
        manifest.write_text("{")
    with pytest.raises(ConfigError, match="none of its 2 checkpoints is whole"):
        ParameterServer(chosen, dim=DIM)


def test_facts_of_a_checkpoint_that_were_changed_are_noticed(tmp_path):
    folder = CheckpointFolder(tmp_path, keep=2)
    facts = {"tokens": {7: 3}, "nan": float("nan"), "말": 0.1}
    for number in (1, 2):
        folder.write(number, Content(facts, {}, {}))
    assert folder.newest()[0] == 2
    manifest = tmp_path / "checkpoint-00000002" / "manifest.json"
    manifest.write_text(manifest.read_text("utf-8").replace('{"7": 3}', '{"7": 4}'), "utf-8")
    number, content = folder.newest()
    assert (number, content.facts["tokens"]) == (1, {"7": 3})
    folder.close()


def test_only_so_many_checkpoints_are_kept_and_nothing_half_written_stays(tmp_path, connect):
    with running_server(config(tmp_path), dim=DIM) as server:
        node = connect(server)
        ids = node.words("말")
        for _ in range(4):
            node.push(ones(ids))
            node.client.checkpoint()
        (tmp_path / "state" / ".checkpoint-00000099").mkdir()
    state = tmp_path / "state"
    assert [p.name for p in sorted(state.glob("checkpoint-*"))] == [
        "checkpoint-00000003",
        "checkpoint-00000004",
    ]
    folder = CheckpointFolder(state, keep=2)
    assert not list(state.glob(".checkpoint-*"))
    assert [p.name for p in folder.journals(0)] == [
        "journal-00000003.jsonl",
        "journal-00000004.jsonl",
    ]
    folder.close()


def test_a_folder_that_another_server_uses_or_that_does_not_fit_is_refused(tmp_path, connect):
    chosen = config(tmp_path)
    with running_server(chosen, dim=DIM) as server:
        connect(server, digest="a" * 64).words("말")
        with pytest.raises(ConfigError, match="another server is using it"):
            ParameterServer(chosen, dim=DIM)
    with pytest.raises(ConfigError, match="has dim 4, the server was started with 5"):
        ParameterServer(chosen, dim=5)
    with pytest.raises(ConfigError, match="is of configuration aaaaaaaaaaaa"):
        ParameterServer(chosen.model_copy(update={"config_digest": "b" * 64}), dim=DIM)
    with running_server(chosen, dim=DIM):
        pass
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(ConfigError, match="state_dir"):
        ParameterServer(config(tmp_path, state_dir=blocked), dim=DIM)


def test_of_a_server_that_could_not_start_nothing_stays(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server = ParameterServer(config(tmp_path, port=taken.getsockname()[1]), dim=DIM)
        with pytest.raises(PlatformError, match="cannot be opened"):
            server.start()
    with running_server(config(tmp_path), dim=DIM):  # the folder is free
        pass


def test_a_checkpoint_comes_back_as_it_was_written(tmp_path):
    import pyarrow as pa

    folder = CheckpointFolder(tmp_path, keep=2)
    assert folder.newest() is None
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    folder.write(1, Content({"말": 1}, {"rows": rows}, {"words": pa.table({"w": ["가"]})}))
    number, content = folder.newest()
    assert (number, content.facts) == (1, {"말": 1})
    assert np.array_equal(content.arrays["rows"], rows)
    assert content.tables["words"].to_pydict() == {"w": ["가"]}
    first = folder.next_epoch()
    assert folder.next_epoch() > first
    folder.close()


def test_a_torn_journal_line_is_left_out_and_cut_off(tmp_path):
    path = tmp_path / "journal"

    def read():
        return [(e.first, e.words, e.evicted.tolist()) for e in read_journal(path)]

    journal = Journal(path)
    journal.write(0, ["말", "글\n"], np.array([], dtype=np.int64))
    journal.close()
    with path.open("ab") as file:
        file.write(b'{"first": 2, "wo')
    assert read() == [(0, ["말", "글\n"], [])]
    journal = Journal(path, repair=True)
    journal.write(2, ["집"], np.array([0, 1]))
    journal.close()
    assert read() == [(0, ["말", "글\n"], []), (2, ["집"], [0, 1])]


def test_words_noted_after_an_unfinished_checkpoint_and_a_restart_keep_their_ids(tmp_path, connect):
    """The journal goes on where the unfinished checkpoint began one."""
    chosen, known = config(tmp_path), {}
    for incarnation in range(3):
        with patch.object(CheckpointFolder, "write", broken):
            server = ParameterServer(chosen, dim=DIM)
            server.start()
            node = connect(server, name=f"node-{incarnation}")
            for at, word in enumerate(("말", "글", "집")):
                known |= {f"{word}{incarnation}": int(node.words(f"{word}{incarnation}")[0])}
                if at == incarnation:
                    server.recovery._try_write()
            crash(server)
    with running_server(chosen, dim=DIM) as server:
        ids = connect(server).words(*known)
        assert dict(zip(known, ids.tolist(), strict=True)) == known


def broken(folder: CheckpointFolder, number: int, content: Content) -> None:
    raise OSError("no space left")


@pytest.mark.slow
def test_a_killed_server_loses_nothing_that_was_acknowledged(tmp_path):
    """kill -9 twice in the middle of two nodes' training: each push counts exactly once."""
    chosen = config(tmp_path, port=lasting_port(), checkpoint_every_s=0.4)
    client = ExchangeConfig(connect_timeout_s=60, max_backoff_s=0.2, rows="float32")
    process = start_server(chosen, dim=DIM)
    words = [f"말{i}" for i in range(50)]
    pushed = {"n0": 0, "n1": 0}
    stop = threading.Event()

    def train(name: str) -> None:
        with ParameterClient(
            f"grpc://127.0.0.1:{chosen.port}", node=name, config=client
        ) as connection:
            clock, sequence = connection.hello().clock, 0
            ids = connection.admit(words, np.full(50, 5))
            while not stop.is_set():
                clock = connection.pull(
                    PullRequest({Table.IN: ids, Table.OUT: ids}, clock=clock)
                ).clock
                sequence += 1
                push = Push(
                    name,
                    sequence,
                    clock,
                    ones(ids),
                    named(words),
                    (SourceProgress("뉴스", 1, 50, 0.0, 0),),
                    tokens=50,
                )
                clock = connection.push(push).clock
                pushed[name] = sequence

    trainers = [threading.Thread(target=train, args=(name,)) for name in pushed]
    try:
        for trainer in trainers:
            trainer.start()
        for _ in range(2):
            reached = min(pushed.values())
            until(lambda reached=reached: min(pushed.values()) > reached + 20)
            process.kill()
            process.join(300)
            process = start_server(chosen, dim=DIM)
        reached = min(pushed.values())
        until(lambda: min(pushed.values()) > reached + 20)
        stop.set()
        for trainer in trainers:
            trainer.join(60)
        total = sum(pushed.values())
        with ParameterClient(
            f"grpc://127.0.0.1:{chosen.port}", node="n0", config=client
        ) as connection:
            welcome = connection.hello()
            assert welcome.sequence == pushed["n0"]
            ids = connection.admit(words, np.full(50, 5))
            assert ids.tolist() == list(range(50))
            rows = connection.pull(
                PullRequest({Table.IN: ids, Table.OUT: ids}, clock=welcome.clock)
            )
            assert rows.rows[Table.OUT].tolist() == [[total] * 4] * 50
            status = connection.status()
            assert status["tokens"] == total * 50
            assert status["documents"] == total
            assert connection.vocabulary().counts.max() <= total
    finally:
        stop.set()
        process.terminate()
        process.join(300)
        assert process.exitcode == 0
    manifest = sorted((tmp_path / "state").glob("checkpoint-*/manifest.json"))[-1]
    assert json.loads(manifest.read_text())["facts"]["totals"]["tokens"] == total * 50


def test_a_taken_port_is_a_clear_error(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for setting in ("port", "http_port"):
            with pytest.raises(PlatformError, match=rf"port {port} .*setting {setting}"):
                ParameterServer(ServerConfig(**{setting: port}), dim=DIM).start()
