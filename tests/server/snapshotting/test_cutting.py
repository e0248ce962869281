"""Cutting windows while training goes on."""

from __future__ import annotations

import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from named import joined, named

from embedding.exchange.contributors import Contributors
from embedding.exchange.payload import BlockCounts, RowDelta
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import Phrase, Table, Window, WindowUnit
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig
from embedding.server.service import running_server
from embedding.snapshots.store import SnapshotStore
from waiting import until

DIM, DAY = 4, 86_400
START = datetime(2020, 2, 1, tzinfo=UTC)
AT = int(START.timestamp())
WINDOW = Window.holding(START, WindowUnit.DAY)


def counted(words, n=1, *, window=AT) -> BlockCounts:
    return named(words, n, window=window)


def config(tmp_path, **changes) -> ServerConfig:
    return ServerConfig(snapshots=str(tmp_path / "snapshots"), min_count=2, **changes)


def test_a_snapshot_holds_the_window_and_later_training_does_not_touch_it(tmp_path, connect):
    with running_server(config(tmp_path), dim=DIM) as server:
        node = connect(server)
        node.push(counts=counted(["말"]), window=AT, published=AT + 60.0, digest="kiwi")
        node.words("말", "글")
        rows = node.pull()
        node.push(counts=counted(["말", "글", "드문"]), window=AT, source="글판", digest="kiwi")
        node.push(counts=counted(["말"], window=AT + DAY), window=AT + DAY)
        ref = node.client.cut(WINDOW)
        node.push((RowDelta(Table.IN, node.ids, np.ones((2, DIM), dtype=np.float32)),))
        snapshot = SnapshotStore(str(tmp_path / "snapshots")).open(ref.id)
        snapshot.verify()
        assert list(snapshot.words) == ["말", "글"]
        assert snapshot.counts.tolist() == [3, 1]
        assert np.array_equal(snapshot.vectors, rows.rows[Table.IN])
        kept = snapshot.by_source
        found = dict(zip(zip(kept.words, kept.sources, strict=True), kept.counts, strict=True))
        # The first mention of 말 came before it had a row, and counts all the same.
        assert found[("말", "뉴스")] == 2
        assert "드문" not in kept.words
        assert snapshot.manifest.tokens == {"뉴스": 1, "글판": 3}
        assert snapshot.manifest.documents == {"뉴스": 1, "글판": 1}
        assert snapshot.manifest.tokenizer_digest == "kiwi"
        status = node.client.status()
        assert status["windows"]["2020-02-01"]["snapshot"] == ref.id
        assert status["windows"]["2020-02-01"]["tokens"] == 4
        assert [s["id"] for s in status["snapshots"]] == [ref.id]
        again = server.snapshotter.cut(WINDOW, force=True)
        assert again.id == ref.id
        assert server.snapshotter._convergence.waiting == [], "it would hold later windows up"
        assert status["windows"]["2020-02-02"]["snapshot"] is None


def test_a_snapshot_counts_words_in_windows_before_that_had_no_row_yet(tmp_path, connect):
    windows = [Window.holding(START + timedelta(days=at), WindowUnit.DAY) for at in range(4)]
    chosen = config(tmp_path, state_dir=tmp_path / "state")
    found = []
    for after in windows:
        # The server is started again before each window: waiting words are digests until then.
        with running_server(chosen, dim=DIM) as server:
            node = connect(server)
            at = int(after.start.timestamp())
            word = ["뜬"] if after == windows[2] else []
            node.words("말", *word)
            node.push(counts=counted(["말", "뜬", "드문"], window=at), window=at)
            ref = node.client.cut(after)
        found.append(SnapshotStore(str(tmp_path / "snapshots")).open(ref.id))
    assert [one.earlier is not None for one in found] == [False, False, True, False]
    earlier = found[2].earlier
    assert earlier is not None
    assert earlier.words.to_pylist() == ["뜬", "뜬"], "of no word that had a row, nor has one now"
    assert earlier.windows.tolist() == [AT, AT + DAY]
    assert earlier.columns[0].tolist() == earlier.columns[1].tolist() == [1, 1]
    assert found[2].source_counts("뜬") == {"뉴스": (1, 1, 0)}
    assert found[2].source_counts("뜬", windows[1]) == {"뉴스": (1, 1, 0)}
    assert found[2].source_counts("말", windows[1]) == found[3].source_counts("뜬", WINDOW) == {}


def test_a_window_that_is_still_being_published_counts_as_one_before(
    tmp_path, connect, monkeypatch
):
    """A node that is quick cuts the next window first: snapshots of a text are the same."""
    windows = [Window.holding(START + timedelta(days=at), WindowUnit.DAY) for at in range(4)]
    publish, going_on, may_end = SnapshotStore.publish, threading.Event(), threading.Event()

    def slowly(store, data, *rest, **named):
        if data.window == windows[2]:
            going_on.set()
            assert may_end.wait(60)
        return publish(store, data, *rest, **named)

    monkeypatch.setattr(SnapshotStore, "publish", slowly)
    chosen = config(tmp_path)
    with running_server(chosen, dim=DIM) as server, ThreadPoolExecutor(2) as pool:
        node, cutting = connect(server), []
        for after in windows:
            at = int(after.start.timestamp())
            node.words("말", *(["뜬"] if after == windows[3] else []))
            node.push(counts=counted(["말", "뜬"], window=at), window=at)
            cutting.append(pool.submit(server.snapshotter.cut, after, force=True))
            if after == windows[2]:
                assert going_on.wait(60)
            elif after == windows[3]:
                until(lambda: int(windows[3].start.timestamp()) in server.state.accounts.cut)
                may_end.set()
            else:
                cutting[-1].result(60)
        last = SnapshotStore(str(tmp_path / "snapshots")).open(cutting[-1].result(60).id)
    assert last.earlier is not None
    assert last.earlier.windows.tolist() == [AT + DAY, AT + 2 * DAY]


def test_a_snapshot_names_the_parts_of_its_phrases_also_after_a_restart(tmp_path, connect):
    chosen = config(tmp_path, state_dir=tmp_path / "state")
    one = Phrase("말글", ("말", "글"), AT + 5.0, AT + 60.0, 2)
    rare = Phrase("드문말", ("드문", "말"), AT + 5.0, AT + 60.0, 2)
    with running_server(chosen, dim=DIM) as server:
        node = connect(server)
        node.words("말글")
        node.push(counts=counted(["말글"]), window=AT, phrases=(one, rare))
    # A checkpoint names no word that has no row: it may be a rare name.
    kept = b"".join(path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file())
    assert "말글".encode() in kept or b"\\ub9d0\\uae00" in kept
    assert "드문말".encode() not in kept
    assert b"\\ub4dc\\ubb38" not in kept
    again = Phrase("말글", ("말", "글"), AT + 9.0, AT + 9.0, 1)
    with running_server(chosen, dim=DIM) as server:
        node = connect(server)
        node.push(counts=counted(["말글"]), window=AT, phrases=(again,))
        ref = node.client.cut(WINDOW)
    snapshot = SnapshotStore(str(tmp_path / "snapshots")).open(ref.id)
    assert snapshot.phrases == {"말글": Phrase("말글", ("말", "글"), AT + 5.0, AT + 9.0, 3)}


def test_a_snapshot_holds_the_weights_that_nodes_tell_of(tmp_path, connect):
    with running_server(config(tmp_path), dim=DIM) as server:
        node = connect(server)
        node.words("말")
        node.push(counts=counted(["말"]), window=AT)
        node.client.report({"source_weights": {"뉴스": 0.5, "글판": "?"}})
        ref = node.client.cut(WINDOW)
        quality = SnapshotStore(str(tmp_path / "snapshots")).open(ref.id).manifest.quality
        told = {name: value for name, value in quality.items() if name.startswith("weight.")}
        assert told == {"weight.뉴스": 0.5}


def test_a_window_is_cut_once_also_when_many_ask_at_the_same_time_and_after_a_restart(
    tmp_path, connect
):
    found = []
    with running_server(config(tmp_path), dim=DIM) as server:
        node = connect(server)
        node.words("말")
        node.push(counts=counted(["말"]), window=AT)

        def cut() -> None:
            found.append(server.snapshotter.cut(WINDOW))

        threads = [threading.Thread(target=cut) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        found.append(node.client.cut(WINDOW))
    with running_server(config(tmp_path), dim=DIM) as server:
        found.append(connect(server).client.cut(WINDOW))
    assert len(found) == 6
    assert len({ref.id for ref in found}) == 1
    assert len(SnapshotStore(str(tmp_path / "snapshots")).list()) == 1


def test_what_comes_late_changes_no_snapshot_and_is_counted_as_late(tmp_path, connect):
    with running_server(config(tmp_path), dim=DIM) as server:
        node = connect(server)
        node.words("말")
        node.push(counts=counted(["말"]), window=AT)
        node.client.cut(WINDOW)
        both = joined(counted(["말"]), counted(["말"], window=AT + DAY))
        node.push(counts=both, window=AT)
        status = node.client.status()
        assert status["sources"]["뉴스"]["late_documents"] == 1
        assert status["tokens"] == 3
        assert status["windows"]["2020-02-01"]["late_documents"] == 1
        assert server.state.accounts.windows.table(AT + DAY).num_rows == 1


def test_parents_follow_the_windows(tmp_path, connect):
    with running_server(config(tmp_path), dim=DIM) as server:
        node = connect(server)
        node.words("말")
        node.push(counts=counted(["말"]), window=AT)
        first = node.client.cut(WINDOW)
        second = node.client.cut(Window(WINDOW.end, WINDOW.end + timedelta(days=1)))
        assert (first.parent, second.parent) == (None, first.id)
        assert second.words == 1


def test_a_window_over_several_days_holds_them_all_and_overlaps_are_refused(tmp_path, connect):
    with running_server(config(tmp_path), dim=DIM) as server:
        node = connect(server)
        node.words("말")
        for day in range(3):
            node.push(counts=counted(["말"], window=AT + day * DAY), window=AT + day * DAY)
        ref = node.client.cut(Window(START, START + timedelta(days=2)))
        snapshot = SnapshotStore(str(tmp_path / "snapshots")).open(ref.id)
        assert snapshot.by_source.windows.tolist() == [AT, AT + DAY]
        assert snapshot.manifest.tokens == {"뉴스": 2}
        with pytest.raises(RefusedError, match="overlaps"):
            node.client.cut(WINDOW)


def test_the_watermark_cuts_windows_by_itself(tmp_path, connect):
    chosen = config(tmp_path, cut="watermark", source_idle_s=60.0)
    with running_server(chosen, dim=DIM) as server:
        node = connect(server)
        node.words("말")
        node.push(counts=counted(["말"]), window=AT, published=AT + 10.0)
        node.push(
            counts=counted(["말"], window=AT + DAY), window=AT + DAY, published=AT + DAY + 10.0
        )
        until(server.snapshotter.refs)
        (ref,) = server.snapshotter.refs()
        assert ref.window_start == START
        assert node.client.cut(WINDOW) == ref


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_window_waits_until_its_nodes_have_rehearsed_it(tmp_path, connect, by_hand):
    chosen = config(tmp_path, cut="watermark", source_idle_s=60.0)
    with running_server(chosen, dim=DIM) as server:
        node = connect(server)
        node.words("말")
        node.client.report({"rehearsal": {"rehearses": True, "unconverged": AT}})
        node.push(counts=counted(["말"]), window=AT, published=AT + 10.0)
        node.push(
            counts=counted(["말"], window=AT + DAY), window=AT + DAY, published=AT + DAY + 10.0
        )
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(server.snapshotter.cut, WINDOW) if by_hand else None
            time.sleep(1.0)
            assert not server.snapshotter.refs()
            node.client.report({"rehearsal": {"rehearses": True, "unconverged": AT + DAY}})
            if asked is not None:
                asked.result(timeout=300)
            until(lambda: server.snapshotter.refs())
        (ref,) = server.snapshotter.refs()
        quality = SnapshotStore(str(tmp_path / "snapshots")).open(ref.id).manifest.quality
        assert quality["settled"] == 1.0


def test_a_window_that_does_not_converge_in_time_is_cut_and_says_so(tmp_path, connect):
    chosen = config(tmp_path, convergence_seconds=0.5)
    with running_server(chosen, dim=DIM) as server:
        node = connect(server)
        node.words("말")
        node.client.report({"rehearsal": {"rehearses": True, "unconverged": AT}})
        node.push(counts=counted(["말"]), window=AT, published=AT + 10.0)
        ref = node.client.cut(WINDOW)
        quality = SnapshotStore(str(tmp_path / "snapshots")).open(ref.id).manifest.quality
        assert quality["settled"] == 0.0


def test_a_complete_window_is_cut_before_the_push_that_shows_it(tmp_path, connect):
    chosen = config(tmp_path, cut="watermark", source_idle_s=60.0)
    with running_server(chosen, dim=DIM) as server:
        node = connect(server)
        ids = node.words("말")
        node.push(counts=counted(["말"]), window=AT, published=AT + 10.0)
        before = node.pull(ids, ids).rows[Table.IN]
        moved = RowDelta(Table.IN, ids, np.ones((1, DIM), dtype=np.float32))
        late = AT + DAY
        node.push(
            (moved,),
            counts=counted(["말"], window=late),
            window=late,
            published=late + 10.0,
        )
        store = SnapshotStore(str(tmp_path / "snapshots"))
        snapshot = store.open(node.client.cut(WINDOW).id)
        assert snapshot.vectors.tolist() == before.tolist()
        assert snapshot.counts.tolist() == [1]


def test_quality_is_measured_on_the_way(tmp_path, connect):
    from embedding.kernel.records import ScorePairs

    gold = tmp_path / "pairs.tsv"
    gold.write_text("가\t나\t3\n나\t다\t2\n가\t다\t1\n", encoding="utf-8")
    with running_server(config(tmp_path, gold=gold), dim=DIM) as server:
        node = connect(server)
        ids = node.words("가", "나", "다")
        node.push(counts=counted(["가", "나", "다"]), window=AT)
        starts = np.full(3, int(START.timestamp()), dtype=np.int64)
        pairs = ScorePairs("뉴스", ids, ids[::-1].copy(), ids.reshape(3, 1), starts)
        node.pull(score=[pairs])
        # After a backlog the next window's documents are scored before this window is cut.
        node.pull(score=[replace(pairs, source="글판", windows=starts + 86_400)])
        store = SnapshotStore(str(tmp_path / "snapshots"))
        quality = store.open(node.client.cut(WINDOW).id).manifest.quality
        following = Window.holding(WINDOW.end, WindowUnit.DAY)
        assert "nll.글판" not in quality
        assert "nll.글판" in store.open(node.client.cut(following).id).manifest.quality
        assert quality["nll"] == pytest.approx(2 * np.log(2))
        assert quality["nll.뉴스"] == quality["nll"]
        assert -1 <= quality["similarity/pairs"] <= 1
        assert quality["coverage/pairs"] == 1.0


def test_what_cannot_be_cut_is_refused_with_the_reason(tmp_path, connect):
    with running_server(ServerConfig(), dim=DIM) as server:
        node = connect(server)
        with pytest.raises(RefusedError, match="no snapshot store"):
            node.client.cut(WINDOW)
    with running_server(config(tmp_path), dim=DIM) as server:
        node = connect(server)
        with pytest.raises(RefusedError, match="no word has a row"):
            node.client.cut(WINDOW)
        node.words("말")
        node.push(counts=counted(["말"]), window=AT)
        assert node.client.cut(WINDOW).words == 1, "a refused cut can be tried again"


def test_a_cut_of_texts_without_authors_says_why_no_word_has_a_row(tmp_path, connect):
    """As of a crawled archive that names none: all its texts count as those of one author."""
    with running_server(config(tmp_path), dim=DIM) as server:
        node = connect(server)
        one = Contributors.of([((7,), (1,))])
        assert node.client.admit(["말"], np.array([9]), one).tolist() == [-1]
        with pytest.raises(RefusedError) as refused:
            node.client.cut(WINDOW)
    said = str(refused.value)
    assert "no word has a row yet; words that were read often enough wait until 3 authors" in said
    assert said.endswith("count as those of one (text.unknown_authors).")


def test_a_window_whose_snapshot_failed_keeps_its_counts_and_can_be_cut_again(tmp_path, connect):
    with running_server(config(tmp_path), dim=DIM) as server:
        node = connect(server)
        node.words("말")
        node.push(counts=counted(["말"]), window=AT)
        bad = np.full((1, DIM), np.inf, dtype=np.float32)
        server.state.tables.add(Table.IN, np.array([0]), bad)
        with pytest.raises(RefusedError, match="not finite"):
            node.client.cut(WINDOW)
        node.push(counts=counted(["말"]), window=AT)
        good = np.ones((1, DIM), dtype=np.float32)
        server.state.tables.restore(Table.IN, np.array([0]), good, good[:, 0])
        ref = node.client.cut(WINDOW)
        snapshot = SnapshotStore(str(tmp_path / "snapshots")).open(ref.id)
        assert snapshot.manifest.tokens == {"뉴스": 2}


def test_a_window_whose_server_was_killed_while_it_was_published_is_cut_after_a_restart(
    tmp_path, connect, monkeypatch
):
    """A checkpoint of that moment says that it is cut, and its snapshot never came to be."""
    chosen = config(
        tmp_path, state_dir=str(tmp_path / "state"), cut="watermark", convergence_seconds=0
    )
    store, killed = SnapshotStore(str(tmp_path / "snapshots")), threading.Event()

    def never(*_: object) -> None:
        killed.wait(300)
        raise RefusedError("killed")

    with running_server(chosen, dim=DIM) as server:
        node = connect(server)
        node.words("말", "글")
        monkeypatch.setattr(server.snapshotter._store, "publish", never)
        node.push(counts=counted(["말"]), window=AT, published=AT + 60.0)
        after = AT + DAY
        node.push(counts=counted(["글"], window=after), window=after, published=after + 60.0)
        until(lambda: AT in server.state.accounts.cut)
        node.client.checkpoint()
        # What follows is what kill -9 leaves.
        server.state.flush = lambda: None
        server.recovery._try_write = lambda: "killed"
        killed.set()
    assert store.list() == []
    monkeypatch.undo()
    with running_server(chosen, dim=DIM):
        until(lambda: len(store.list()) == 1)
        (ref,) = store.list()
        assert int(ref.window_start.timestamp()) == AT
        assert store.open(ref.id).manifest.tokens == {"뉴스": 1}


def test_a_window_whose_snapshot_was_removed_is_not_cut_again_from_the_tables_of_today(
    tmp_path, connect
):
    """It would be published with no document, and with the vectors of later windows."""
    chosen = config(tmp_path, state_dir=tmp_path / "state")
    with running_server(chosen, dim=DIM) as server:
        node = connect(server)
        node.words("말")
        node.push(counts=counted(["말"]), window=AT)
        ref = server.snapshotter.cut(WINDOW)
    shutil.rmtree(tmp_path / "snapshots" / ref.id)
    with running_server(chosen, dim=DIM) as server:
        with pytest.raises(RefusedError, match="its snapshot was removed since"):
            server.snapshotter.cut(WINDOW)
        assert server.snapshotter.refs() == []


def test_documents_that_come_again_after_the_server_was_killed_are_not_late(tmp_path, connect):
    """A snapshot was published after the last checkpoint: what came between comes once more."""
    chosen = config(tmp_path, state_dir=str(tmp_path / "state"))
    with running_server(chosen, dim=DIM) as server:
        node = connect(server)
        node.words("말")
        node.push(counts=counted(["말"]), window=AT)
        node.client.checkpoint()
        node.push(counts=counted(["말"]), window=AT)
        node.client.cut(WINDOW)
        server.state.flush = lambda: None
        server.recovery._try_write = lambda: "killed"
    with running_server(chosen, dim=DIM) as server:
        node = connect(server)
        node.client.checkpoint()
        server.state.flush = lambda: None
    with running_server(chosen, dim=DIM) as server:  # also of the next restart
        node = connect(server)
        node.push(counts=counted(["말"]), window=AT)
        assert node.client.status()["sources"]["뉴스"]["late_documents"] == 0
        node.push(counts=counted(["말"]), window=AT)
        assert node.client.status()["sources"]["뉴스"]["late_documents"] == 1, "nobody read it"


def test_a_server_starts_although_a_snapshot_after_its_checkpoint_is_damaged(tmp_path, connect):
    chosen = config(tmp_path, state_dir=str(tmp_path / "state"))
    with running_server(chosen, dim=DIM) as server:
        node = connect(server)
        node.words("말")
        node.push(counts=counted(["말"]), window=AT)
        node.client.checkpoint()
        ref = node.client.cut(WINDOW)
        server.state.flush = lambda: None
        server.recovery._try_write = lambda: "killed"
    (tmp_path / "snapshots" / ref.id / "vectors.arrow").write_bytes(b"")
    with running_server(chosen, dim=DIM) as server:
        assert connect(server).client.status()["vocabulary"] == 1


def test_training_goes_on_while_a_window_is_written(tmp_path, connect):
    with running_server(config(tmp_path), dim=DIM) as server:
        node = connect(server)
        ids = node.words(*[f"말{i}" for i in range(300)])
        node.push(counts=counted([f"말{i}" for i in range(300)]), window=AT)
        stop = threading.Event()

        def train() -> None:
            while not stop.is_set():
                node.pull()
                values = np.ones((len(ids), DIM), dtype=np.float32)
                node.push((RowDelta(Table.IN, ids, values), RowDelta(Table.OUT, ids, values)))

        trainer = threading.Thread(target=train)
        trainer.start()
        try:
            time.sleep(0.1)
            ref = server.snapshotter.cut(WINDOW)
        finally:
            stop.set()
            trainer.join(120)
        snapshot = SnapshotStore(str(tmp_path / "snapshots")).open(ref.id)
        # Every push adds one to every value of both tables: a torn copy would show.
        assert len(np.unique(snapshot.contexts)) == 1


def told(compression: str, **changes: object) -> dict[str, object]:
    setup = {"model": ModelConfig().model_dump(mode="json"), "compression": compression}
    return {"setup": {**setup, "topology": "ps", "tokenizer": "kiwi", "nodes": 2, **changes}}


def test_a_manifest_says_what_the_nodes_that_are_there_train_with(tmp_path, connect):
    store = SnapshotStore(str(tmp_path / "snapshots"))
    with running_server(config(tmp_path), dim=DIM) as server:
        one, other, gone = (connect(server, name) for name in ("one", "other", "gone"))
        for day in range(4):
            one.push(counts=counted(["말"], 2, window=AT + day * DAY), window=AT + day * DAY)
        one.words("말")

        def cut(day: int) -> dict[str, object]:
            start = START + timedelta(days=day)
            return store.open(
                one.client.cut(Window.holding(start, WindowUnit.DAY)).id
            ).manifest.config

        assert not {"model", "compression", "tokenizer"} & cut(0).keys()
        gone.client.report(told("none"))
        gone.client.close()
        one.client.report(told("fp16"))
        for nonsense in (told("onebit", nodes=-1), {"setup": "onebit"}, told("x" * 1000)):
            other.client.report(nonsense)
        known = cut(1)
        assert known["model"] == ModelConfig().model_dump(mode="json")
        assert (known["compression"], known["topology"]) == ("fp16", "ps")
        assert (known["tokenizer"], known["nodes"]) == ("kiwi", 2)
        other.client.report(told("onebit"))
        both = cut(2)
        assert (both["compression"], both["tokenizer"]) == ("fp16, onebit", "kiwi")
        # A training's last window is cut when all its nodes have gone.
        one.client.close()
        other.client.close()
        ref = server.snapshotter.cut(Window.holding(START + timedelta(days=3), WindowUnit.DAY))
        assert store.open(ref.id).manifest.config["compression"] == "fp16, none, onebit"


def test_a_window_cut_after_a_restart_says_what_nodes_train_with_before_they_report_again(
    tmp_path, connect
):
    store = SnapshotStore(str(tmp_path / "snapshots"))
    chosen = config(tmp_path, state_dir=tmp_path / "state")
    with running_server(chosen, dim=DIM) as server:
        node = connect(server, "one")
        node.client.report({**told("fp16"), "source_weights": {"뉴스": 1.5}, "more": "gone"})
        connect(server, "other").client.report({"setup": "nonsense"})
        node.push(counts=counted(["말"], 2, window=AT), window=AT)
        node.words("말")
    with running_server(chosen, dim=DIM) as server:
        node = connect(server, "one")
        assert server.state.reports.last == told_again("fp16")
        node.push(counts=counted(["말"], 2, window=AT), window=AT)
        cut = node.client.cut(WINDOW)
        known = store.open(cut.id).manifest
        assert (known.config["compression"], known.config["nodes"]) == ("fp16", 2)
        assert known.quality["weight.뉴스"] == 1.5
        node.client.report(told("onebit"))
        assert server.state.reports.last["one"] == told("onebit")


def told_again(compression: str) -> dict[str, object]:
    """What a checkpoint keeps of one node's report."""
    return {"one": {**told(compression), "source_weights": {"뉴스": 1.5}}}
