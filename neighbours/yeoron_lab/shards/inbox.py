"""What nodes have sent to a shard and its log has not named yet.

Rows and log come by different ways: a node sends rows to the shard and tells the primary, which
says in its log when they are to be applied. Either may be here first, and both come again after a
restart. So each push is held under its node and number until the log names it, and the ledger says
which are in the rows already: those are neither held nor applied again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from embedding.exchange.protocol import Push
from embedding.kernel.errors import RefusedError
from embedding.server.ledger.sequence import Ledger, NodeLedger
from yeoron_lab.shards.log import Change, PushNumber

logger = logging.getLogger(__name__)


class ShardInbox:
    """Pushes that wait, and what became of each node's. The shard's lock guards it.

    lost      pushes that the log named and that nobody has any more
    repeated  pushes in the rows whose text is read again (`hello`)
    """

    def __init__(self, index: int, *, keeps_checkpoints: bool) -> None:
        self.ledger = Ledger(keeps_checkpoints=keeps_checkpoints)
        self.lost = self.repeated = 0
        self._index = index
        self._pushes: dict[PushNumber, Push | None] = {}
        self._again: set[PushNumber] = set()

    def hello(self, node: str, first: int, last: int | None) -> NodeLedger:
        """A node connects; `first` and `last` as in `ShardState.hello`."""
        entry = self.ledger.of(node)
        entry.session += 1
        # The log may name them: without a place-holder it would wait for them for ever.
        for sequence in range(entry.accepted + 1, first):
            self._pushes[node, sequence] = None
        entry.accepted = max(entry.accepted, first - 1)
        # A node that connects again, as after a broken stream, is counted once.
        if last is not None and entry.applied > last and (node, last) not in self._again:
            self._again.add((node, last))
            self.repeated += entry.applied - last
        return entry

    def check(self, push: Push) -> None:
        """RefusedError for a push that leaves a gap."""
        accepted = self.ledger.of(push.node).accepted
        if push.sequence > accepted + 1:
            raise RefusedError(
                f"push {push.sequence} of node {push.node}: gap, shard {self._index} "
                f"expects {accepted + 1}."
            )

    def put(self, push: Push) -> None:
        """Hold a push that leaves no gap; sent again, the later content counts."""
        self._pushes[push.node, push.sequence] = push
        accepted = self.ledger.of(push.node).accepted
        self.ledger.accept(push.node, max(accepted, push.sequence))

    def is_fresh(self, ticket: PushNumber) -> bool:
        """Whether a push is not in the rows. A log that is sent again, to a shard that is ahead of
        it, names pushes that are: each is applied once."""
        node, sequence = ticket
        return sequence > self.ledger.of(node).applied

    def wants(self, entry: Change) -> bool:
        """Whether a push of this entry is not here yet."""
        return any(self.is_fresh(t) and t not in self._pushes for t in entry.tickets)

    def named(self, entry: Change) -> dict[PushNumber, Push | None]:
        """The pushes of an entry that are not in the rows; None for one that nobody has."""
        return {t: self._pushes.get(t) for t in entry.tickets if self.is_fresh(t)}

    def booked(self, pushes: Mapping[PushNumber, Push | None]) -> None:
        """These pushes of `named` are in the rows now."""
        for (node, sequence), push in pushes.items():
            if push is None:
                logger.warning("push %d of node %s was lost with its node", sequence, node)
                self.lost += 1
            self._pushes.pop((node, sequence), None)
            self.ledger.apply(node, sequence)
