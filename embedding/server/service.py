"""The parameter server as a running thing: ports, threads, signals."""

from __future__ import annotations

import itertools
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from embedding.exchange.sharding import RunningShards, sharding
from embedding.kernel.errors import PlatformError, RefusedError, UnavailableError
from embedding.kernel.memory import give_back
from embedding.kernel.stopping import stop_on_signals
from embedding.kernel.tracing import open_traces
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.controls import Controls
from embedding.server.figures.metrics import render
from embedding.server.flight.credentials import read_credentials
from embedding.server.flight.listening import end, listen
from embedding.server.flight.shell import FlightService, NodeSession, SharingCalls
from embedding.server.grouping import GROUPS, Followers, LeaderLink, needed_groups
from embedding.server.recovery.checkpoint import CheckpointFolder
from embedding.server.recovery.checkpointer import last_of
from embedding.server.recovery.restoring import Recovery
from embedding.server.recovery.seeding import NOTHING, check_rollback
from embedding.server.rowstore.interface import RowShape
from embedding.server.rowstore.local import LocalRows
from embedding.server.snapshotting.snapshotter import Snapshotter
from embedding.server.state import ServerState
from embedding.server.status import build_status
from embedding.server.words.digests import WordDigests
from embedding.snapshots.store import SnapshotStore

if TYPE_CHECKING:
    from embedding.server.figures.http import HttpService

logger = logging.getLogger(__name__)

_STUCK_S = 5.0


_TICK_S = 0.5
_FOLLOW_TICKS = 10
_GIVE_BACK_TICKS = 120


class Ticker:
    """A thread that goes on after an error, as nothing else would notice a node that is gone.

    parts  also called, twice a second
    """

    def __init__(
        self, state: ServerState, snapshotter: Snapshotter, parts: Sequence[Callable[[], None]]
    ) -> None:
        self._state = state
        self._snapshotter = snapshotter
        self._parts = parts
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ticker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> bool:
        """Begin to end; False when that was asked for before."""
        if self._stop.is_set():
            return False
        self._stop.set()
        return True

    def join(self) -> None:
        if self._thread.ident is not None:
            self._thread.join(timeout=10)

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        ticks = itertools.count()
        while not self._stop.wait(_TICK_S):
            try:
                self._tick(next(ticks))
            except Exception:
                logger.exception("the ticker goes on after an error")

    def _tick(self, number: int) -> None:
        self._state.tick()
        with self._state.lock:
            self._state.meters.sample(time.monotonic())
        for part in self._parts:
            part()
        if number % _FOLLOW_TICKS == 0:
            self._state.follow_frequent()
        if number % _GIVE_BACK_TICKS == _GIVE_BACK_TICKS - 1:
            give_back()
        if self._state.config.cut == "watermark":
            for window in self._state.due():
                self._snapshotter.complete(window)
            self._snapshotter.amend_due()


class ParameterServer:
    """One parameter server; `start` opens its ports, `stop` closes them.

    dim        columns of a row; the last `biases` of them are no part of a vector (GloVe: 1)
    buckets    rows for n-grams (fastText), 0 for every other model
    recovery   writes checkpoints; None: none are kept
    http       pages that answer already (`restoring`); None: they are opened by `start`
    pages      whether there are such pages; one that nobody can ask needs none
    """

    def __init__(
        self,
        config: ServerConfig,
        sync: SyncConfig | None = None,
        *,
        dim: int,
        seed: int = 0,
        buckets: int = 0,
        biases: int = 0,
        http: HttpService | None = None,
        pages: bool = True,
    ) -> None:
        follows = needed_groups("group.leader") if config.group.leader is not None else None
        config = config if follows is None else follows.following(config)
        self.config = config
        self._traces = open_traces("server")
        self._credentials = read_credentials(config)
        folder = None
        if config.state_dir is not None:
            folder = CheckpointFolder(config.state_dir, keep=config.keep_checkpoints)
        digests = WordDigests()
        if folder is not None:
            digests = WordDigests(folder.waiting_key(), folder.refused())
        leader = None if follows is None else follows.upstream(config)
        here = config.shards == 1 and config.split == "rows"
        self.state = ServerState(
            config if here else config.of_primary(),
            sync or SyncConfig(),
            RowShape(dim, seed=seed, buckets=buckets, biases=biases),
            epoch=None if folder is None else folder.next_epoch(),
            digests=digests,
            rows=LocalRows if here else sharding().rows,
            upstream=leader,
        )
        self._grouping = grouping = GROUPS.first()
        self.groups = Followers() if grouping is None else grouping.followers(self.state)
        self.recovery: Recovery | None = None
        try:
            if folder is not None:
                every_s, parts = config.checkpoint_every_s, [self.groups]
                self.recovery = Recovery(self.state, folder, every_s=every_s, parts=parts)
            self.snapshotter = Snapshotter(self.state, config, self._traces)
            self._shards = self._sharded(folder)
            self.link: LeaderLink | None = None
            if follows is not None and leader is not None:
                self.link = follows.link(self.state, leader, self._end)
            if config.cut == "watermark":
                self.state.accounts.when_complete(self.snapshotter.complete)
        except BaseException:
            if folder is not None:
                folder.close()
            raise
        self._flight: FlightService | None = None
        self._http = http
        self._pages = pages
        self._ended: threading.Event | None = None
        self.wants_back: str | None = None
        shards = [] if self._shards is None else [self._shards.tick]
        self._ticker = Ticker(self.state, self.snapshotter, [*shards, self.groups.tick])

    @property
    def location(self) -> str:
        return "" if self._flight is None else self._flight.address

    @property
    def http_url(self) -> str:
        """Where /health, /metrics and /status are, http://host:port; empty without such pages."""
        return "" if self._http is None else self._http.url

    def _sharded(self, folder: CheckpointFolder | None) -> RunningShards | None:
        """The shards, where the rows do not lie here."""
        if self.state.rows.local:
            return None
        identity = secrets.token_hex(16) if folder is None else folder.identity()
        return sharding().running(self.state.rows, self.config, identity=identity)

    def _end(self) -> None:
        """Have `serve_forever` end."""
        if self._ended is not None:
            self._ended.set()

    def start(self) -> None:
        """Open the ports; PlatformError when one is taken."""
        config = self.config
        for note in self._credentials.notes:
            logger.warning("%s", note)
        begun = self._http is not None
        if self._http is None and self._pages:
            from embedding.server.figures.http import HttpService

            self._http = HttpService(host=config.http_host, port=config.http_port)
        try:
            if self._shards is not None:
                self._shards.start()
            if self.link is not None:
                self.link.begin()
            self._flight = listen(
                config, self.state, Controls(self).calls(), self._session, self._credentials
            )
        except BaseException:
            # Nothing of a start that failed stays: no process, line, port or lock of a folder.
            self.snapshotter.close()
            if self.link is not None:
                self.link.close()
            self._release()
            raise
        self._ticker.start()
        if self.link is not None:
            self.link.start()
        if self.recovery is not None:
            self.recovery.start()
        if self._http is not None:
            if not begun:
                self._http.start()
            from embedding.server.figures.http import Pages

            self._http.show(Pages(self.status, self.metrics, self.ailing))
        logger.info("parameter server at %s, status at %s", self.location, self.http_url or "none")

    def _release(self) -> None:
        """The folder's lock, the processes of shards and the port of the status."""
        if self.recovery is not None:
            self.recovery.stop()
        if self._shards is not None:
            self._shards.stop()
        if self._http is not None:
            self._http.stop()

    def stop(self) -> None:
        """Apply what is held back, finish what is being written, free the ports."""
        if not self._ticker.stop():
            return
        self.state.close()
        if self._flight is not None:
            end(self._flight)
        self._ticker.join()
        self.state.flush()
        self.snapshotter.close()
        self._traces.close()
        if self.link is not None:
            self.link.stop()
        if self._shards is not None:
            self.state.rows.catch_up()
        self._release()

    def serve_forever(
        self, ready: Callable[[], None] = lambda: None, *, terminal: bool = True
    ) -> None:
        """Serve until SIGTERM, or ^C where it is `terminal`'s; call it from the main thread.

        `ready` is called once, when the ports are open. PlatformError when what is here could not
        be kept: the last checkpoint was not written, or the leader was lost.
        """
        self._ended = ended = stop_on_signals(terminal=terminal)
        self.state.tables.device.limit_threads(self.config.threads)
        self.start()
        ready()
        ended.wait()
        self.stop()
        if self.link is not None and self.link.failed is not None:
            raise PlatformError(self.link.failed)
        unkept = self._unkept()
        if unkept and self.wants_back is None:
            raise PlatformError(" ".join(unkept))

    def _unkept(self) -> list[str]:
        """What of this incarnation is in no checkpoint, now that it has ended, a sentence each."""
        found = []
        if self.recovery is not None and self.recovery.failed is not None:
            found.append(f"state_dir {self.config.state_dir}: {last_of(self.recovery.failed)}")
        if self._shards is not None:
            found += self._shards.fleet.unkept()
        return found

    def roll_back(self, to: str) -> None:
        """End in order to begin again from the snapshot `to`; `wants_back` says so afterwards.

        Raises RefusedError where that cannot be, and while nodes are training; SnapshotError when
        there is no such snapshot or it is damaged.
        """
        state = self.state
        check_rollback(self.config, buckets=state.composer.buckets, biases=state.composer.biases)
        if self._ended is None:
            raise RefusedError("rollback: only a server of its own (`yeoron serve`) can.")
        if to != NOTHING:
            SnapshotStore(str(self.config.snapshots)).open(to).verify()
        with state.lock:
            if training := sorted(state.machine.board.active()):
                raise RefusedError(
                    f"rollback: {', '.join(training)} still train; stop the pool first."
                )
            if following := sorted(self.groups.present()):
                raise RefusedError(
                    f"rollback: groups {', '.join(following)} follow and would bring back what is "
                    "to be forgotten; stop their servers and pools first."
                )
            self.wants_back = to
        # The answer goes out first.
        threading.Timer(0.2, self._ended.set).start()

    def status(self) -> dict[str, Any]:
        return {
            **build_status(
                self.state,
                self.snapshotter.refs(),
                self.groups.describe,
                self.snapshotter.sentences,
            ),
            "following": None if self.link is None else self.link.describe(),
            "ailing": self.ailing(),
        }

    @property
    def shard_pids(self) -> list[int]:
        return [] if self._shards is None else self._shards.fleet.pids

    def checkpoint(self, *, wait: bool) -> None:
        """Have all that is here in a checkpoint, at once or soon; UnavailableError: it is not.

        It is the leader's where there is one, else this server's and its shards'.
        """
        if self.recovery is not None:
            failed = self.recovery.request(wait=wait)
            if failed is not None:
                raise UnavailableError(f"{failed}.")
        elif self.link is not None:
            self.link.checkpoint(wait=wait)
        else:
            self.state.rows.checkpoint(wait=wait)

    def ailing(self) -> list[str]:
        """Why the server does not do all of its work, a sentence each."""
        reasons = []
        if self._ticker.stopping or self.state.closing:
            reasons.append("the server is closing.")
        elif not self._ticker.alive:
            reasons.append("the thread that watches over nodes and windows has ended.")
        if self._shards is not None:
            reasons += self._shards.ailing()
        if self.link is not None:
            reasons += self.link.ailing()
        if self.recovery is not None and self.recovery.failed is not None:
            reasons.append(f"the last checkpoint failed: {self.recovery.failed}.")
        failed = self.snapshotter.failed()
        if failed is not None:
            reasons.append(failed)
        if not self.state.lock.acquire(timeout=_STUCK_S):
            return [*reasons, f"the tables were not free for {_STUCK_S:.0f} s."]
        reasons += [each for each in (self.state.changes.stuck, self.state.rows.full) if each]
        self.state.lock.release()
        return reasons

    def metrics(self) -> bytes:
        shards = None if self._shards is None else sharding()
        more = [part.metrics for part in (shards, self._grouping) if part is not None]
        return render(self.status(), self.state.meters, more)

    def _session(self) -> NodeSession:
        extras = [
            *(partial(part.stream, self.state) for part in self.state.parts.values()),
            partial(SharingCalls, self.state),
        ]
        if self._grouping is not None:
            asks = self.snapshotter.asks
            extras.append(partial(self._grouping.stream, self.groups, self.state, asks))
        return NodeSession(
            self.state,
            want_checkpoint=lambda: self.checkpoint(wait=False),
            meters_of=self.groups.meters,
            extras=extras,
        )


@contextmanager
def running_server(
    config: ServerConfig | None = None,
    sync: SyncConfig | None = None,
    *,
    dim: int = 8,
    seed: int = 0,
    buckets: int = 0,
    biases: int = 0,
) -> Iterator[ParameterServer]:
    """A server on free ports for the length of a `with` block."""
    server = ParameterServer(
        config or ServerConfig(), sync, dim=dim, seed=seed, buckets=buckets, biases=biases
    )
    server.start()
    try:
        yield server
    finally:
        server.stop()
