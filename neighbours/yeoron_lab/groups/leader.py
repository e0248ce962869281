"""The leading group's server, as a server that follows it sees it.

It gives ids and cuts windows, and its checkpoints are those of the group. Of what the group's nodes
push it has to hear how far rows moved (`replica.py`) and, by node, what was read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from embedding.exchange.config import ExchangeConfig
from embedding.exchange.contributors import Contributors
from embedding.exchange.protocol import Push, Welcome
from embedding.kernel.config import part_of
from embedding.kernel.errors import RefusedError, UnavailableError
from embedding.kernel.records import IntArray
from embedding.server.admitting import WordAdmission
from embedding.server.compatibility import SERVER_GROUPS
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.parts import Part, PushArrival
from embedding.server.words.accounting import Accounts
from embedding.server.words.vocabulary import Vocabulary
from yeoron_lab.groups.client import LeaderClient
from yeoron_lab.groups.taking import NewPushes
from yeoron_lab.processes import own_line
from yeoron_lab.requests import check_pace
from yeoron_lab.settings import GroupSettings

TRY_S = 2.0
"""How long one request is tried again before the leader counts as away."""
PAUSE_S = 0.2


def following_config(config: ServerConfig) -> ServerConfig:
    """As a group that follows needs it: what only the leader keeps or cuts is left out."""
    return config.model_copy(
        update={
            "state_dir": None,
            "snapshots": None,
            "cut": "manual",
            "usage": False,
            "rare_mentions": 0,
        }
    )


def check_follows(sync: SyncConfig, every_s: float) -> None:
    """ConfigError for what does not go with server groups that exchange every so many seconds."""
    check_pace(every_s, sync.liveness_timeout_s)
    SERVER_GROUPS.check(sync.policy)


class PassingAccounts(Accounts):
    """Counts that steer sampling and figures for the status; windows are the leader's."""

    @property
    def parts(self) -> dict[str, Part]:
        return {name: part for name, part in super().parts.items() if name != "windows"}

    def learnt(self, arrival: PushArrival, now: float, closed: Container[int]) -> None:
        self._count(arrival, ())
        for progress in arrival.push.progress:
            self.read(arrival.push.node, progress, now)


class LeadersWords(WordAdmission):
    """Words get the ids that the leader gives; new ones none while it is away.

    ask  the leader; see Leader.ids
    """

    def __init__(self, ask: Callable[..., IntArray], *made_from: Any) -> None:
        super().__init__(*made_from)
        self._ask = ask

    def admit(
        self, words: Sequence[str], counts: IntArray, contributors: Contributors | None = None
    ) -> IntArray:
        if len(words) != len(counts):
            raise RefusedError("admit: words and counts differ in length.")
        with self._lock:
            known = self.vocabulary.ids(words)
        if not (known < 0).any():
            return known
        with self.admitting:
            try:
                ids = self._ask(words, counts, contributors)
            except UnavailableError:
                return known
            with self._lock:
                new = (ids >= 0) & (self.vocabulary.ids(words) < 0)
                at = np.flatnonzero(new)[np.argsort(ids[new], kind="stable")]
                self.install_given(ids[at], [words[i] for i in at.tolist()])
                return self.vocabulary.ids(words)

    def install_given(self, ids: IntArray, words: Sequence[str]) -> None:
        """Give words rows and these ids (increasing), whatever ids lie between them (under the
        lock); those that have a row are passed over."""
        fresh = self.vocabulary.slot_map.slots(ids) < 0
        ids, words = ids[fresh], [word for word, new in zip(words, fresh, strict=True) if new]
        ends = np.flatnonzero(np.diff(ids) != 1) + 1
        last = self.vocabulary.next_id
        for run in np.split(np.arange(len(ids)), ends):
            if len(run):
                self.vocabulary.next_id = int(ids[run[0]])
                self.install(words[run[0] : run[-1] + 1], ids[:0])
        self.vocabulary.next_id = max(last, self.vocabulary.next_id)


class Leader:
    """See Upstream; the connection, and what was not sent to the leader yet.

    client    speaks with it
    away      it does not answer
    greeting  what it answered to the group's greeting, None before
    untold    by node, the pushes that it has not heard of; the server's lock guards what is untold
    """

    def __init__(
        self,
        config: ServerConfig,
        client: Callable[..., LeaderClient] = LeaderClient,
    ) -> None:
        self._config, self._group = config, part_of(config, GroupSettings).group
        self.stopping = threading.Event()
        self.client = client(
            self._group.leader or "",
            node=self._group.name,
            config=leader_line(config),
            config_digest=config.config_digest,
            stop=self.stopping,
        )
        self.away = False
        self.greeting: Welcome | None = None
        self.untold: dict[str, NewPushes] = {}
        self.untold_pushes = 0
        self._digests: dict[str, None] = {}

    def greet(self) -> Welcome:
        """Greet it; ConfigError when it is of another model, UnavailableError while it is away."""
        welcome = self.client.hello()
        if welcome.liveness_s:
            check_pace(self._group.every_s, welcome.liveness_s, "the leader's ")
        self.greeting = welcome
        return welcome

    def check(self, sync: SyncConfig) -> None:
        check_follows(sync, self._group.every_s)

    def accounts(self, config: ServerConfig, vocabulary: Vocabulary, dim: int) -> Accounts:
        return PassingAccounts(config, vocabulary, dim)

    def welcome(self, own: Welcome) -> Welcome:
        leader = self.greeting
        if leader is None:
            return own
        return replace(
            own,
            window_unit=leader.window_unit,
            min_count=max(leader.min_count, own.min_count),
            rare_mentions=leader.rare_mentions,
            usage=leader.usage,
            salt=leader.salt,
            min_authors=leader.min_authors,
            min_sources=leader.min_sources,
        )

    def words(self, *made_from: Any) -> LeadersWords:
        return LeadersWords(self.ids, *made_from)

    def ids(
        self, words: Sequence[str], counts: IntArray, contributors: Contributors | None
    ) -> IntArray:
        """Ids int64 [n] of words, -1 for none; UnavailableError while it cannot be asked. Without
        the lock of the server here."""
        if self.away or self.greeting is None:
            raise UnavailableError("the leader is away.")
        return self.client.admit(words, counts, contributors)

    def released(self, push: Push, after: int) -> None:
        self.untold.setdefault(push.node, NewPushes(after)).add(push)
        self.untold_pushes += 1
        if push.tokenizer_digest:
            self._digests[push.tokenizer_digest] = None

    def take(self) -> tuple[dict[str, NewPushes], tuple[str, ...]]:
        """What was not sent yet, by node, and tokenizers' digests; it counts as sent now."""
        taken = self.untold, tuple(self._digests)
        self.untold, self.untold_pushes, self._digests = {}, 0, {}
        return taken


def leader_line(config: ServerConfig) -> ExchangeConfig:
    """How a group reaches its leader; one that is away is not waited for."""
    quick = {"connect_timeout_s": TRY_S, "max_backoff_s": PAUSE_S * 2}
    return own_line(config).model_copy(update=quick)
