"""A server that follows: a replica of the leading group's tables.

To its nodes it is a parameter server like any other. What they push it applies at once.
"""

from __future__ import annotations

import numpy as np

from embedding.exchange.groups.client import RemoteChanges
from embedding.exchange.protocol import VocabularyDelta, Welcome
from embedding.kernel.errors import ConfigError
from embedding.server.groups.leader import Leader
from embedding.server.groups.replica import ReplicaRows
from embedding.server.groups.taking import Cut, Taken, compose
from embedding.server.state import ServerState


class Follower:
    """Brings the state here and the leader's up to date with each other.

    state   whose upstream is `leader`
    rows    those of the state
    """

    def __init__(self, state: ServerState, leader: Leader, rows: ReplicaRows) -> None:
        self.state = state
        self.leader = leader
        self.rows = rows
        self._cut: Cut | None = None

    def greet(self) -> Welcome:
        """Greet the leader; ConfigError when it is of another model."""
        welcome = self.leader.greet()
        if welcome.dim != self.state.dim:
            raise ConfigError(
                f"group.leader: its rows have {welcome.dim} columns, this server's "
                f"{self.state.dim}; start both with the same model."
            )
        return welcome

    def resume(self, changes: RemoteChanges) -> None:
        """Go on where the leader's tables are; a node keeps what no checkpoint of it holds."""
        ledger = self.state.ledger
        with self.state.changed:
            ledger.fences.incarnations.update(changes.fences)
            for node, at in changes.nodes.items():
                ledger.restore(node, at.sequence, at.tokens, at.offset)
                ledger.of(node).durable = at.durable
        self.rows.begin({node: at.sequence for node, at in changes.nodes.items()})

    @property
    def cutting(self) -> bool:
        """Whether an entry was begun whose rows could not be fetched yet."""
        return self._cut is not None

    def take(self, sequence: int, groups: int) -> Taken | None:
        """Everything since the last time, as entry `sequence`; None when nothing was pushed."""
        with self.state.lock:
            self.state.changes.check()
            if self._cut is None and self.leader.untold:
                self._cut = self._begin_cut()
            elif self._cut is None:
                self.rows.all_merged()
            cut = self._cut
        if cut is None:
            return None
        taken = compose(cut, cut.moves(), self.state.config.group, sequence, groups)
        self._cut = None
        return taken

    def _begin_cut(self) -> Cut:
        """Everything up to now (under the lock)."""
        moves = self.rows.take_moves()  # first: what it has no memory for is tried again
        pushes, digests = self.leader.take()
        return Cut(pushes, digests, tuple(self.state.scores.drain()), moves)

    def follow_words(self, delta: VocabularyDelta, next_id: int, *, closed: bool) -> None:
        """Have the words of the leader, by its ids, and their counts.

        next_id  the first id that may have been given since: of these the leader's answer may know
                 nothing yet
        """
        state, vocabulary = self.state, self.state.vocabulary
        with state.words.admitting, state.changed:
            own = vocabulary.alive()
            gone = np.setdiff1d(own[own < next_id], delta.alive, assume_unique=True)
            if len(gone):
                state.words.install([], gone)
            ids = np.asarray(delta.ids, dtype=np.int64)
            order = np.argsort(ids, kind="stable")
            words = delta.words
            state.words.install_given(ids[order], [words[i] for i in order.tolist()])
            vocabulary.next_id = max(vocabulary.next_id, next_id)
            vocabulary.set_counts(delta.alive, delta.alive_counts)
            if closed and not vocabulary.closed:
                vocabulary.shut()
