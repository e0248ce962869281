"""The primary's connections to its shards: each sends the log as it grows."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from embedding.exchange.config import ExchangeConfig
from embedding.exchange.peer import Channel, Peer, Talk, ask
from embedding.exchange.protocol import PROTOCOL_VERSION
from embedding.exchange.wire import Message, whole
from embedding.kernel.errors import ExchangeError, RefusedError, UnavailableError
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.server.rows.composing import GramBags
from yeoron_lab.shards.client.split import Layout
from yeoron_lab.shards.log import ShardLog, as_json


class LateError(UnavailableError):
    """A shard has waited a moment and not carried out the log up to where it was asked."""


logger = logging.getLogger(__name__)

BEAT_S = 0.5
"""How often a shard without news is asked how it is."""
_PAUSE_S = 0.2
"""Between two tries to reach a shard."""


class LateShardsError(UnavailableError):
    """Some shards are away or behind; `shards` are their names."""

    def __init__(self, late: Sequence[ShardLink]) -> None:
        self.shards = [f"shard {link.index}" for link in late]
        super().__init__(f"{', '.join(self.shards)} did not answer.")


class ShardLink:
    """A thread that keeps one shard up to date with the log, and what any thread asks of its rows.

    Who asks for rows hears UnavailableError while the shard is away, and LateError while it is
    behind the position that is named.

    identity  of the training: a shard of another one refuses the primary
    figures  what the shard said last about itself
    failed   why the shard cannot be used, None while it can or is only away
    """

    def __init__(
        self,
        index: int,
        location: str,
        log: ShardLog,
        *,
        identity: str,
        config: ExchangeConfig,
    ) -> None:
        self.index, self.location = index, location
        self._identity, self._config = identity, config
        self.figures: dict[str, Any] = {}
        self.durable = 0
        self.away = True
        self.failed: str | None = None
        self._log = log
        self._peer = Peer(location, config, self._greet)
        self._calls = Peer(location, config, self._greet_for_rows)
        self._sent = 0
        self._unneeded: set[int] = set()
        self._stopping = threading.Event()
        self._wanted, self._asked = 0, -1
        self._thread = threading.Thread(target=self._run, name=f"shard-{index}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        with self._log.changed:
            self._log.changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout=10)
        self._calls.close()

    @property
    def position(self) -> int:
        """How much of the log the shard has carried out."""
        return int(self.figures.get("position", 0))

    def want_checkpoint(self) -> None:
        """Have the shard write what is in the log now soon; asked again where it dies before."""
        self._wanted, self._asked = self._log.position, -1
        with self._log.changed:
            self._log.changed.notify_all()

    def checkpoint(self, timeout_s: float = 300.0) -> int:
        """Have the shard write a checkpoint and wait for it; UnavailableError when it is away.

        Returns up to which position of the log the shard has all on disk.
        """
        wait = {"wait": True}
        number, position = ask(self.location, self._config, "checkpoint", wait, timeout_s)
        return int(position) if number == self._log.number else 0

    # -- its rows ---------------------------------------------------------------------------

    def rows(self, table: Table, ids: IntArray, at: tuple[int, int]) -> FloatArray:
        """float32 [n, dim] at `at` or later."""
        header = {"op": "rows", "table": table, "at": list(at)}
        return self.fetch(Message(header, {"ids": ids})).array("rows", "f4", 2)

    def sums(self, bags: GramBags, at: tuple[int, int]) -> FloatArray:
        """float32 [n, dim], the sum of each bag's rows of n-grams; otherwise as `rows`."""
        arrays = {"ids": bags.buckets.astype(np.int64), "offsets": bags.offsets.astype(np.int64)}
        return self.fetch(Message({"op": "sums", "at": list(at)}, arrays)).array("rows", "f4", 2)

    def copy_begun(self, number: int, at: tuple[int, int]) -> None:
        """Return when the copy at `at` was begun."""
        self.fetch(Message({"op": "copied", "number": number, "at": list(at)}))

    def copied(self, number: int, at: tuple[int, int], table: Table, ids: IntArray) -> FloatArray:
        """float32 [n, dim] of the copy at `at`."""
        header = {"op": "copied", "number": number, "table": table, "at": list(at)}
        return self.fetch(Message(header, {"ids": ids})).array("rows", "f4", 2)

    def forget(self, number: int) -> None:
        """A copy is needed no longer; a shard that does not answer hears it with the next one."""
        self._unneeded.add(number)
        try:
            for each in sorted(self._unneeded):
                self.fetch(Message({"op": "forget", "number": each}))
                self._unneeded.discard(each)
        except ExchangeError as error:
            logger.debug("shard %d: %s", self.index, error)

    def fetch(self, message: Message) -> Message:
        """The answer to one request."""
        answer = self._calls.request(message, patient=False)
        if answer.header["status"] != "ok":
            raise LateError(f"shard {self.index} has not carried out the log up to there.")
        return answer

    def _greet_for_rows(self) -> Talk[None]:
        yield self._greeting()

    # -- the log ----------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._lead()
            except UnavailableError as error:
                if not self.away:
                    logger.warning("shard %d is away: %s", self.index, error)
            except Exception as error:  # noqa: BLE001 - whatever it is, the status shows it
                if self.failed is None:
                    logger.error("shard %d cannot be used: %s", self.index, error)
                self.failed = str(error)
            self.away = True
            self._stopping.wait(_PAUSE_S)

    def _lead(self) -> None:
        try:
            channel = self._peer.open()
            self.away, self.failed, self._asked = False, None, -1
            while not self._stopping.is_set():
                self._send(channel, BEAT_S)
                # Not before the shard has carried out what is to be in the checkpoint, and once a
                # stream: a shard that died with the order unheard is asked again by the next one.
                due = self._wanted if self.position >= self._wanted else 0
                if self.durable < self._wanted and self._asked < due:
                    self._asked = self.position
                    channel.action("checkpoint", {"wait": False})
        finally:
            self._peer.close()

    def _send(self, channel: Channel, wait_s: float) -> int:
        """Send what is new in the log, and hear how the shard is; how many entries there were."""
        first, entries = self._log.after(self._sent, timeout_s=wait_s)
        header = {"op": "log", "first": first, "entries": [as_json(each) for each in entries]}
        self._heard(channel.request(Message(header)).header)
        self._sent = first + len(entries) - 1
        return len(entries)

    def _greeting(self) -> Message:
        """The answer says where the shard is in the log."""
        header = {"op": "lead", "version": PROTOCOL_VERSION}
        return Message({**header, "number": self._log.number, "identity": self._identity})

    def _greet(self) -> Talk[None]:
        """Hear from where the shard goes on; RefusedError when it lost what it had."""
        header: Any = (yield self._greeting()).header
        # Entries up to the floor are dropped: nobody could tell them again. A shard that lacks one,
        # for its folder was emptied or is an old copy, would miss its pushes without a word.
        floor = self._log.floor
        applied = header["applied"]
        behind = [n for n, s in floor.applied.items() if int(applied.get(n, 0)) < s]
        if behind or whole(header, "next_id") < floor.next_id:
            raise RefusedError(
                f"shard {self.index} at {self.location} lost rows that it had on disk: give "
                "its state folder back, or empty the folders of the primary and of every shard."
            )
        self._sent = whole(header, "position")

    def _heard(self, header: Any) -> None:
        self.figures = {name: value for name, value in header.items() if name != "status"}
        self.durable = whole(header, "durable")
        self.failed = header.get("stuck")


class PrimaryLinks:
    """All shards of a primary; `links`: one a shard, from `start` on."""

    def __init__(self, log: ShardLog, layout: Layout) -> None:
        self.log, self.layout = log, layout
        self.locations: tuple[str, ...] = ()
        self.links: list[ShardLink] = []
        self._restarts: Callable[[], Sequence[int]] = tuple

    def connect(
        self,
        locations: Sequence[str],
        *,
        identity: str,
        config: ExchangeConfig,
        reached: Sequence[str] | None = None,
        restarts: Callable[[], Sequence[int]] | None = None,
    ) -> None:
        """The shards are there; `locations` are for the nodes, `reached`, where they differ, for
        the primary.

        restarts  how often each was started again
        """
        self.locations = tuple(locations)
        self._restarts = restarts or (lambda: [0] * len(locations))
        self.links = [
            ShardLink(index, location, self.log, identity=identity, config=config)
            for index, location in enumerate(reached or locations)
        ]

    def __len__(self) -> int:
        return len(self.links)

    def start(self) -> None:
        for link in self.links:
            link.start()

    def stop(self, timeout_s: float = 10.0) -> None:
        """Let the shards catch up, then send no more."""
        self.catch_up(timeout_s)
        for link in self.links:
            link.stop()

    def catch_up(self, timeout_s: float) -> bool:
        """Wait until every shard has carried out what is in the log now; False when one did not."""
        goal, deadline = self.log.position, time.monotonic() + timeout_s
        while any(link.away or link.position < goal for link in self.links):
            failed = any(link.failed is not None for link in self.links)
            if failed or time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def tick(self) -> None:
        """Drop entries that every shard has on disk."""
        self.log.drop(min(link.durable for link in self.links))

    def want_checkpoint(self) -> None:
        for link in self.links:
            link.want_checkpoint()

    def checkpoint(self, position: int = 0) -> None:
        """Have every shard write a checkpoint; returns when all are complete.

        UnavailableError when one does not hold the log up to `position`: it was started again
        since it was there.
        """
        self.want_checkpoint()
        for link in self.links:
            if link.checkpoint() < position:
                raise UnavailableError(f"shard {link.index} was started again meanwhile")

    def rows(self, table: Table, ids: IntArray, at: tuple[int, int]) -> FloatArray:
        """float32 [n, dim] from all shards; LateShardsError when some do not answer yet."""
        layout = self.layout
        rows = np.zeros((len(ids), layout.dim), dtype=np.float32)

        def fill(link: ShardLink) -> None:
            own = np.flatnonzero(layout.held(ids, link.index))
            if len(own):
                rows[own, layout.columns(link.index)] = link.rows(table, ids[own], at)

        self._of_each(fill)
        return rows

    def sums(self, bags: GramBags, at: tuple[int, int]) -> FloatArray:
        """float32 [n, dim], the sum of each bag's rows of n-grams; otherwise as `rows`.

        Each shard adds up its own, so that no such row travels.
        """
        total = np.zeros((len(bags.offsets) - 1, self.layout.dim), dtype=np.float32)

        def add(link: ShardLink) -> None:
            own = picked(bags, self.layout.held(bags.buckets.astype(np.int64), link.index))
            if len(own.buckets):
                np.add(total, link.sums(own, at), out=total)

        self._of_each(add)
        return total

    def _of_each(self, ask: Callable[[ShardLink], None]) -> None:
        """Ask all shards, then LateShardsError of those that did not answer."""
        late = []
        for link in self.links:
            try:
                ask(link)
            except UnavailableError:
                late.append(link)
        if late:
            raise LateShardsError(late)

    def describe(self) -> list[dict[str, Any]]:
        """Each shard, as the status shows it."""
        newest, restarts = self.log.position, self._restarts()
        return [
            {
                "shard": link.index,
                "location": link.location,
                "state": "failed" if link.failed else "away" if link.away else "up",
                "reason": link.failed,
                "restarts": restarts[link.index],
                "behind": newest - link.position,
                **link.figures,
            }
            for link in self.links
        ]


def picked(bags: GramBags, which: npt.NDArray[np.bool_]) -> GramBags:
    """The same words with these of their n-grams alone; bool [g]."""
    before = np.concatenate([[0], np.cumsum(which)]).astype(np.int32)
    return GramBags(bags.buckets[which], before[bags.offsets])
