"""What a server asks of another one whose replica it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from embedding.exchange.contributors import Contributors
from embedding.exchange.protocol import Push, Welcome
from embedding.kernel.records import IntArray
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.words.accounting import Accounts
from embedding.server.words.vocabulary import Vocabulary


class Upstream(Protocol):
    """The server upstream gives ids, cuts windows and keeps what is learnt here.

    The lock of the server here guards all calls but `ids`.
    """

    def check(self, sync: SyncConfig) -> None:
        """ConfigError for settings that do not go with being a replica."""

    def accounts(self, config: ServerConfig, vocabulary: Vocabulary, dim: int) -> Accounts:
        """How pushes are counted here."""

    def welcome(self, own: Welcome) -> Welcome:
        """The answer to a node's greeting, with what holds for the whole model."""

    def ids(
        self, words: Sequence[str], counts: IntArray, contributors: Contributors | None
    ) -> IntArray:
        """Ids int64 [n] of words, -1 for none; UnavailableError while it cannot be asked."""

    def released(self, push: Push, after: int) -> None:
        """A push is about to be applied or dropped; `after`: the node's last one before it."""
