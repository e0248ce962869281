"""Training in the server's own memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from in_process import InProcess, make_state

from embedding.exchange.payload import UNITS
from embedding.exchange.protocol import PROTOCOL_VERSION, PullRequest, SharedTables
from embedding.kernel.errors import ConfigError, RefusedError, YeoronError
from embedding.kernel.records import Calendar, FloatArray, Table, TokenBlock, WindowUnit
from embedding.models.base import BlockLoss, Trainer, make_trainer
from embedding.models.config import ModelConfig
from embedding.server import rowstore
from embedding.server.config import SyncConfig
from embedding.server.rows.torchdevice import TorchDevice
from embedding.server.state import ServerState
from embedding.worker.config import NodeConfig
from embedding.worker.learning.learner import Learner
from embedding.worker.learning.link import LearnerSetup
from embedding.worker.learning.ticks import Close
from embedding.worker.usage.past import PastTexts
from embedding.worker.usage.usage import UsageReader
from gpukernel import DEVICE, gpu_kernel
from yeoron_lab.hogwild import memory
from yeoron_lab.hogwild import training as hogwild
from yeoron_lab.hogwild.training import HogwildInPlace, MappedTables

DIM = 4
MODEL = ModelConfig(dim=DIM, window=2, sample=0.0, learning_rate=0.1)


def make(
    state: ServerState,
    name: str = "n0",
    usage: UsageReader | None = None,
    model: ModelConfig = MODEL,
    trainer: Trainer | None = None,
) -> tuple[Learner, InProcess]:
    line = InProcess(state, name)
    shared = state.hello("n0", version=PROTOCOL_VERSION, digest="", clock=0).shared
    assert shared is not None
    learner = Learner(
        line,
        trainer or make_trainer(model),
        None,
        LearnerSetup(
            node=name,
            model=model,
            config=NodeConfig(replay_ratio=0.0),
            calendar=Calendar(WindowUnit.DAY),
        ),
        usage=usage,
        kind=HogwildInPlace.training(shared, DIM),
    )
    return learner, line


def held(state: ServerState) -> list[FloatArray]:
    slots = np.arange(state.vocabulary.rows)
    return [state.tables.read(table, slots) for table in (Table.IN, Table.OUT)]


def block(seed: int) -> TokenBlock:
    words = [f"말{i}" for i in np.random.default_rng(seed).integers(0, 20, 200)]
    return TokenBlock.build("뉴스", [[words]], published=[0.0], keys=[f"{seed}"])


@pytest.fixture
def state() -> ServerState:
    return make_state(SyncConfig(policy="hogwild"), dim=DIM, max_words=50)


def test_a_node_writes_to_the_servers_rows_and_pushes_none(state: ServerState) -> None:
    learner, line = make(state)
    learner.learn([block(0)])
    before = held(state)
    learner.learn([block(1)])
    for rows, once in zip(held(state), before, strict=True):
        assert not np.array_equal(rows, once)
    assert all(push.deltas == () for push in line.pushes)
    assert all(push.tokens == 200 for push in line.pushes)
    assert sum(line.counts().values()) == 400


def test_a_window_that_closes_is_read_by_the_rows_in_shared_memory(
    state: ServerState, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = UsageReader.of(MODEL, True, PastTexts(Calendar(WindowUnit.DAY), 10_000, 6))
    learner, line = make(state, usage=usage)
    words = [[f"말{i}", "말1", f"말{i + 1}"] for i in range(2, 9)]
    for day in (0, 1):
        times, keys = [day * 86_400.0] * len(words), [f"{day}{i}" for i in range(len(words))]
        texts = [[each[:: 1 - 2 * day]] for each in words]
        learner.learn([TokenBlock.build("뉴스", texts, published=times, keys=keys)])
    asked: list[int] = []
    ask = line.pull

    def pull(request: PullRequest) -> Any:
        asked.append(sum(map(len, request.ids.values())))
        return ask(request)

    monkeypatch.setattr(line, "pull", pull)
    rows = held(state)
    learnt = learner.prepare((), close=Close(86_400))
    learner.training.train(learnt)
    learner.training.push(learnt)
    assert learnt.close == Close(86_400)
    assert learnt.fresh_tokens == learnt.trained_tokens == 0
    assert not any(asked), "rows lie in the node's own memory"
    for before, after in zip(rows, held(state), strict=True):
        assert np.array_equal(before, after)
    sent = line.pushes[-1].usage
    assert {part.part // UNITS for part in sent} == {0, 1, 2}, "by rows; by counts, both days"
    assert sum(float(part.documents.sum()) for part in sent) > 0


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> ServerState:
    """A server whose tables are tensors, on a GPU where there is one."""
    there, lent = TorchDevice(torch.device(DEVICE)), []

    def lend(rows: torch.Tensor) -> str:
        lent.append(rows)
        return "lent"

    # By CUDA IPC a process opens no tables of its own.
    monkeypatch.setattr(memory, "lend", lend)
    monkeypatch.setattr(hogwild, "borrow", lambda handle, shape: lent[-1].view(shape))
    monkeypatch.setattr(rowstore, "pick_device", lambda name, *, shared: there)
    return make_state(SyncConfig(policy="hogwild"), dim=DIM, max_words=50)


def test_a_node_trains_in_place_on_tables_of_a_gpu(on_gpu: ServerState) -> None:
    """Of its noise words each is drawn by the words' counts, on the device."""
    trainer = gpu_kernel().GpuTrainer(MODEL)
    shared = on_gpu.hello("n9", version=PROTOCOL_VERSION, digest="", clock=0).shared
    assert shared is not None
    assert shared.on_gpu
    learner, line = make(on_gpu, trainer=trainer)
    text = [[["하나", "둘", "셋"]], [["둘", "넷"]]]
    for key in "ab":
        before = held(on_gpu)
        learnt = learner.learn(
            [TokenBlock.build("뉴스", text, published=[0.0] * 2, keys=[key, f"{key}2"])]
        )
        assert learnt.trained_tokens == 5
    assert learnt.loss.loss_sum > 0
    assert all(not np.array_equal(*pair) for pair in zip(held(on_gpu), before, strict=True))
    assert all(push.deltas == () for push in line.pushes)
    assert line.counts() == {"하나": 2, "둘": 4, "셋": 2, "넷": 2}


def test_what_a_block_that_diverges_did_on_a_gpu_is_taken_back(on_gpu: ServerState) -> None:
    class Diverging:
        def train(self, block: Any, vectors: Any, contexts: Any, **rest: Any) -> BlockLoss:
            vectors += float("nan")
            contexts += 1e9
            return BlockLoss(float("nan"), 5, 5)

    learner, line = make(on_gpu, trainer=Diverging())
    learner.words.code([block(0)], 1)
    before = held(on_gpu)
    assert np.isfinite(before[0]).all()
    with pytest.raises(YeoronError, match="diverged; set a smaller"):
        learner.learn([block(1)])
    for rows, once in zip(held(on_gpu), before, strict=True):
        assert np.array_equal(rows[: len(once)], once)
        assert np.isfinite(rows).all()
    assert line.pushes == []


def test_a_gpu_without_room_for_a_block_ends_the_node_in_a_sentence(on_gpu: ServerState) -> None:
    class Full:
        def train(self, *block: Any, **rest: Any) -> BlockLoss:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nmore of it")

    learner, line = make(on_gpu, trainer=Full())
    with pytest.raises(ConfigError, match=r"memory. Tried to allocate 2 GiB\); end what else"):
        learner.learn([block(0)])
    assert line.pushes == []


def test_tables_that_a_gpu_has_no_room_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*shape: object, **kind: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    device = TorchDevice(torch.device(DEVICE))
    monkeypatch.setattr(torch, "zeros", full)
    with pytest.raises(ConfigError, match=r"tables of 50 words and 4 numbers.*smaller max_words"):
        memory.shared_rows(device, [50, 50], 4)


def test_tables_of_a_gpu_that_this_process_cannot_reach_are_refused() -> None:
    away = SharedTables('[0, "00", 0, 0, "00", 0, "00", false]', 10, on_gpu=True)
    with pytest.raises(ConfigError, match="start nodes on the server's own host"):
        MappedTables.attach(away, DIM)


def test_two_nodes_see_each_others_steps_at_once(state: ServerState) -> None:
    one, _ = make(state, "n0")
    shared = state.hello("n1", version=PROTOCOL_VERSION, digest="", clock=0).shared
    assert shared is not None
    two = MappedTables.attach(shared, DIM)
    one.learn([block(0)])
    assert two.contexts.any()
    rows = held(state)[1]
    assert np.array_equal(two.contexts[: len(rows)], rows)


def test_words_beyond_the_room_of_the_shared_tables_get_no_row(state: ServerState) -> None:
    """A row's place is its id, so none can be given to another word."""
    learner, _ = make(state)
    many = [f"말{i}" for i in range(80)]
    learned = learner.learn([TokenBlock.build("뉴스", [[many]], published=[0.0], keys=["k"])])
    assert len(state.vocabulary) == 50
    assert learned.trained_tokens == 50
    more = TokenBlock.build("뉴스", [[["새말"] * 9]], published=[0.0], keys=["k"])
    assert learner.learn([more]).trained_tokens == 0


def test_tables_that_are_not_on_this_host_are_refused(tmp_path) -> None:
    away = SharedTables(str(tmp_path / "none"), 10)
    with pytest.raises(ConfigError, match="not on this host; use ssp or asp"):
        MappedTables.attach(away, DIM)
    short = tmp_path / "short"
    short.write_bytes(b"123")
    with pytest.raises(ConfigError, match="does not hold"):
        MappedTables.attach(SharedTables(str(short), 10), DIM)


def test_a_server_changes_neither_to_nor_from_hogwild_while_it_runs(state: ServerState) -> None:
    other = make_state(SyncConfig(policy="asp"), dim=DIM)
    for server, policy in ((state, "asp"), (other, "hogwild")):
        with pytest.raises(RefusedError, match="start the server with that policy"):
            server.configure(SyncConfig(policy=policy))
