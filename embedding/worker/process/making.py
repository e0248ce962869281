"""Builds a node's learner and transport from its specification and the server's greeting."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from typing import Any

from embedding.exchange.client import ParameterClient
from embedding.exchange.placement import needed_placement
from embedding.exchange.protocol import Welcome
from embedding.exchange.relay import Relay, needed_relays
from embedding.exchange.rows import MakeRows, RowsAtServer
from embedding.exchange.topologies.base import JoiningNode
from embedding.exchange.topologies.traits import TOPOLOGIES
from embedding.exchange.transport import Transport
from embedding.kernel.errors import ConfigError
from embedding.kernel.records import Calendar
from embedding.models.base import make_trainer
from embedding.stream.replay import make_replay
from embedding.worker.corpus.corpus import Offset
from embedding.worker.crawling.unacknowledged import Unacknowledged
from embedding.worker.learning.heldout import HeldOut
from embedding.worker.learning.learner import Learner
from embedding.worker.learning.link import LearnerSetup
from embedding.worker.learning.rehearsal import NODE_ROUNDS
from embedding.worker.learning.training import TRAININGS, MakeTraining, Training, in_place
from embedding.worker.spec import NodeSpec
from embedding.worker.usage.past import PastTexts
from embedding.worker.usage.sharing import LOOK_S, Peers
from embedding.worker.usage.usage import UsageReader
from embedding.worker.words.contributing import ContributorCollector
from embedding.worker.words.evidence import EvidenceKeeper
from embedding.worker.words.lexicon import NodeLexicon
from embedding.worker.words.lookahead import LookAhead


def connect(location: str, **settings: Any) -> ParameterClient:
    """A client that has greeted the server, whose rows go where the server says that they lie.

    settings  as `ParameterClient` takes them
    """

    def greeted(rows: MakeRows) -> tuple[ParameterClient, Welcome]:
        client = ParameterClient(location, **settings, rows=rows)
        try:
            return client, client.hello()
        except BaseException:
            client.close()
            raise

    client, welcome = greeted(RowsAtServer)
    if not welcome.shards:
        return client
    # No goodbye in between: the server would take the node for gone, and close windows without it.
    client.drop()
    client.close()
    return greeted(needed_placement().node_rows(welcome.split))[0]


def relay_of(spec: NodeSpec) -> Relay | None:
    """The node's line to where pushes are added up; None where it pushes to the server."""
    return None if spec.relay is None else needed_relays().line(spec.relay, spec.exchange)


def make_transport(
    spec: NodeSpec, server: Transport, welcome: Welcome, stop: threading.Event
) -> Transport:
    """The transport over `server`; waits for the other nodes when rows are all-reduced."""
    node = JoiningNode(
        name=spec.name,
        incarnation=str(os.getpid()),
        config=spec.topology,
        exchange=spec.exchange,
        meeting=spec.ring,
        welcome=welcome,
        buckets=spec.model.gram_rows,
        tokens=lambda offset: Offset.of(offset).tokens,
        stop=stop,
    )
    return TOPOLOGIES.get(spec.topology.kind)(server, node)


def make_learner(
    spec: NodeSpec,
    client: ParameterClient,
    transport: Transport,
    welcome: Welcome,
    stop: threading.Event,
    *,
    rehearses: bool,
) -> Learner:
    """The learner that the server's topology and policy need.

    rehearses  what is remembered is learnt again between fresh blocks
    """
    model, calendar = spec.model, Calendar.of(welcome.window_unit)
    remembers = spec.node.replay_ratio or rehearses
    # Rows that nodes sum up among themselves cannot be asked for by one of them alone.
    peers = _peers(spec, client, stop)
    past = None
    if spec.ring is None and spec.node.past_tokens:
        past = PastTexts(calendar, spec.node.past_tokens, spec.node.past_windows)
    usage = UsageReader.of(model, welcome.usage, past, peers)
    held_out = None
    if rehearses and spec.node.held_out:
        held_out = HeldOut(spec.node.held_out, model.window, model.negative, model.seed)
    # A corpus is text that every node may read.
    make_rounds = NODE_ROUNDS.first()
    shares = spec.corpus is not None
    rounds = make_rounds and make_rounds(client.peer, model, spec.stream, spec.name, shares, stop)
    on_gpu = welcome.shared is not None and welcome.shared.on_gpu
    trainer = in_place().trainer(model) if on_gpu else make_trainer(model)
    memory = make_replay(spec.stream, model.seed) if remembers else None
    active = 1 if spec.ring is None else spec.ring.size
    return Learner(
        transport,
        trainer,
        memory,
        LearnerSetup(
            *(spec.name, model, spec.node, calendar),
            incarnation="" if usage is None else spec.incarnation,
            # Portions belong together by the mark of their process.
            most_bytes=min(LearnerSetup.most_bytes, spec.exchange.max_message_bytes // 4)
            if spec.incarnation
            else spec.exchange.max_message_bytes,
        ),
        welcome=replace(welcome, active=active),
        lexicon=_lexicon(spec, welcome, calendar, stop),
        held_out=held_out,
        rounds=rounds,
        usage=usage,
        unacknowledged=Unacknowledged(welcome.offset) if spec.corpus is None else None,
        kind=_kind(client, welcome),
    )


def _peers(spec: NodeSpec, client: ParameterClient, stop: threading.Event) -> Peers | None:
    """None of a node that reads a whole corpus alone."""
    nodes = 0
    if spec.corpus is not None:
        nodes = spec.corpus.count if spec.corpus.peers is None else spec.corpus.peers
        if nodes < 2:
            return None

    def rest() -> bool:
        client.idle()  # no barrier of the others waits for this node meanwhile
        return stop.wait(LOOK_S)

    most_bytes = spec.exchange.max_message_bytes
    peers = Peers(client.peer, most_bytes, nodes=nodes, rest=rest)
    client.greeted.append(peers.greeted)
    return peers


def _kind(client: ParameterClient, welcome: Welcome) -> MakeTraining:
    """As the server's rows and policy need it."""
    if (training := client.rows.training()) is not None:
        return training
    if welcome.shared is not None:
        return in_place().training(welcome.shared, welcome.dim)
    kind = TRAININGS.first()
    if kind is None and not welcome.pace.every_block:
        raise ConfigError(
            f"policy {welcome.policy}: it pulls and pushes every so many blocks, and no way of "
            'training does that here; pip install "yeoron[all]" brings one.'
        )
    return kind or Training


def listener_of(spec: NodeSpec, welcome: Welcome) -> ContributorCollector | None:
    """Who tells the server who used a word; not of a corpus, whose words everybody may see."""
    unknown = spec.text.unknown_authors
    return ContributorCollector.of(welcome, unknown) if spec.corpus is None else None


def _lexicon(
    spec: NodeSpec, welcome: Welcome, calendar: Calendar, stop: threading.Event
) -> NodeLexicon:
    """Reads a corpus ahead of what is learnt, where later mentions can give a word its row."""
    tokens, look_ahead = spec.node.look_ahead_tokens, None
    if spec.corpus is not None and 1 < welcome.min_count <= tokens:
        look_ahead = LookAhead(tokens, calendar, stop)
    evidence = None
    if spec.evidence is not None:
        evidence = EvidenceKeeper(spec.evidence, spec.name, calendar)
    return NodeLexicon(
        listener=listener_of(spec, welcome), evidence=evidence, look_ahead=look_ahead
    )
