"""A node's learner, put together of what its specification and the server's greeting ask for."""

from __future__ import annotations

import threading

from embedding.exchange.client import ParameterClient
from embedding.exchange.pasttexts import TOKEN_BYTES
from embedding.exchange.protocol import Welcome
from embedding.exchange.shards.columns import ColumnsOnShards
from embedding.exchange.transport import Transport
from embedding.kernel.records import WindowUnit
from embedding.models.base import Trainer
from embedding.models.making import make_trainer
from embedding.stream.replay import make_replay
from embedding.worker.crawling.unacknowledged import Unacknowledged
from embedding.worker.learning.batch import BatchWork
from embedding.worker.learning.columns import on_columns
from embedding.worker.learning.heldout import HeldOut
from embedding.worker.learning.hogwild import MappedTables, in_place
from embedding.worker.learning.learner import Extras, Learner
from embedding.worker.learning.nodeclock import Start
from embedding.worker.learning.paced import at_a_pace
from embedding.worker.learning.training import LearnerSetup, MakeTraining
from embedding.worker.spec import NodeSpec
from embedding.worker.usage.past import PastTexts
from embedding.worker.usage.peers import CorpusPeers
from embedding.worker.usage.usage import UsageReader
from embedding.worker.words.contributing import ContributorCollector
from embedding.worker.words.evidence import EvidenceKeeper
from embedding.worker.words.lexicon import NodeLexicon
from embedding.worker.words.lookahead import LookAhead


def make_learner(
    spec: NodeSpec,
    client: ParameterClient,
    transport: Transport,
    welcome: Welcome,
    stop: threading.Event,
    *,
    rehearses: bool,
    trainer: Trainer | None = None,
) -> Learner:
    """The learner that the server's topology and policy need.

    rehearses  what is remembered is learnt again between fresh blocks
    trainer    None: as the specification says
    """
    model, unit = spec.model, WindowUnit(welcome.window_unit)
    remembers = spec.node.replay_ratio or rehearses
    # Rows that nodes sum up among themselves cannot be asked for by one of them alone.
    peers = _peers(spec, client)
    past = (
        PastTexts.of(spec.node, unit, names_late_words=peers is not None)
        if spec.ring is None
        else None
    )
    shares = spec.corpus is not None
    extras = Extras(
        lexicon=_lexicon(spec, welcome, unit, stop),
        held_out=_held_out(spec) if rehearses and spec.node.held_out else None,
        rounds=BatchWork(client.session, model, spec.stream, spec.name, shares, stop),
        usage=UsageReader.of(model, welcome.usage, past, peers),
        unacknowledged=Unacknowledged(welcome.offset) if spec.corpus is None else None,
    )
    trainer = trainer or make_trainer(model, torch=spec.node.trainer == "torch")
    memory = make_replay(spec.stream, model.seed) if remembers else None
    start = Start.of(welcome, active=1 if spec.ring is None else spec.ring.size)
    return Learner(
        transport,
        trainer,
        memory,
        LearnerSetup(spec.name, model, spec.node, unit),
        start=start,
        extras=extras,
        kind=_kind(client, welcome),
    )


def _peers(spec: NodeSpec, client: ParameterClient) -> CorpusPeers | None:
    """Of a corpus that several nodes share: its text may leave a node, that of a stream may not."""
    if spec.corpus is None:
        return None
    nodes = spec.corpus.count if spec.corpus.peers is None else spec.corpus.peers
    most = spec.exchange.max_message_bytes // TOKEN_BYTES
    return CorpusPeers(client.session, nodes, most) if nodes > 1 else None


def _kind(client: ParameterClient, welcome: Welcome) -> MakeTraining:
    """As the server's split and policy need it."""
    if isinstance(client.path, ColumnsOnShards):
        return on_columns(client.path)
    if welcome.shared is not None:
        return in_place(MappedTables.attach(welcome.shared, welcome.dim))
    return at_a_pace


def listener_of(spec: NodeSpec, welcome: Welcome) -> ContributorCollector | None:
    """Who tells the server who used a word; not of a corpus, whose words everybody may see."""
    return ContributorCollector.of(welcome) if spec.corpus is None else None


def _lexicon(
    spec: NodeSpec, welcome: Welcome, unit: WindowUnit, stop: threading.Event
) -> NodeLexicon:
    """Reads a corpus ahead of what is learnt, where later mentions can give a word its row."""
    tokens, look_ahead = spec.node.look_ahead_tokens, None
    if spec.corpus is not None and 1 < welcome.min_count <= tokens:
        look_ahead = LookAhead(tokens, unit, stop)
    evidence = None if spec.evidence is None else EvidenceKeeper(spec.evidence, spec.name)
    return NodeLexicon(
        listener=listener_of(spec, welcome), evidence=evidence, look_ahead=look_ahead
    )


def _held_out(spec: NodeSpec) -> HeldOut:
    model = spec.model
    return HeldOut(spec.node.held_out, model.window, model.negative, model.seed)
