"""The policy whose nodes stop now and then to minimise a batch together."""

from __future__ import annotations

from dataclasses import replace

from embedding.exchange.config import ExchangeConfig
from embedding.exchange.protocol import ROUND, Pace
from embedding.kernel.config import part_of
from embedding.models.config import ModelConfig
from embedding.models.traits import ROUNDS_MODEL
from embedding.server.compatibility import ROUNDS_COMPRESSION
from embedding.server.config import SyncConfig
from embedding.server.policies.base import ClockTable, Ssp
from embedding.server.policies.traits import POLICIES, PolicyTraits
from yeoron_lab.settings import KeepingSettings, RoundSettings


def _check(model: ModelConfig, exchange: ExchangeConfig) -> None:
    """ValueError where nodes could not take part in rounds of L-BFGS."""
    for need, name in ((ROUNDS_MODEL, model.model), (ROUNDS_COMPRESSION, exchange.compression)):
        if not need.met(name):
            raise ValueError(f"policy sandblaster with {need.registry.kind} {name}: {need.reason}")
    pulls = part_of(exchange, KeepingSettings).pulls
    if pulls != "rows":
        raise ValueError(
            f"policy sandblaster with pulls {pulls}: every node computes its portions on the same "
            "rows, and those have to be whole; rows is accepted"
        )


@POLICIES.register("sandblaster", PolicyTraits(waits=True, needs_rounds=True, check=_check))
class Sandblaster(Ssp):
    """Fresh text as under ssp; every `lbfgs_every` clocks all nodes come together for a round of
    L-BFGS on what they remember (Dean 2012, section 4.2; `yeoron_lab.lbfgs`).

    Invariant: while a round is on nobody reads for another block, every active node has pushed all
    clocks before it, and the tables hold them; it begins and ends once.
    """

    name = "sandblaster"

    def __init__(self, config: SyncConfig) -> None:
        super().__init__(config)
        self._rounds = part_of(config, RoundSettings)
        self._due: int | None = None

    @property
    def reads_ahead(self) -> bool:
        """A round begins when every push is in."""
        return False

    def due(self, board: ClockTable) -> int:
        """The clock of the next round, or of the one that is on."""
        if self._due is None:
            self._due = board.since + self._rounds.lbfgs_every
        return self._due

    def waiting_for(self, board: ClockTable, clock: int) -> list[str]:
        """As under ssp, and from the clock of a round on for those behind it, then for its end.

        Whoever is past that clock takes part as well, however slow the others are: it was there
        before the server went back to a checkpoint.
        """
        due = self.due(board)
        if clock < due:
            return super().waiting_for(board, clock)
        return board.behind(due) or [ROUND]

    def finished(self, board: ClockTable) -> None:
        self._due = max(self.due(board), board.furthest()) + self._rounds.lbfgs_every

    def pace(self, board: ClockTable) -> Pace:
        """How much each node gives to a batch, and in what portions."""
        batch, portion = self._rounds.lbfgs_batch_tokens, self._rounds.lbfgs_portion_tokens
        return replace(super().pace(board), batch_tokens=batch, portion_tokens=portion)
