"""The parameter server as a running thing: ports, threads, signals."""

from __future__ import annotations

import itertools
import logging
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from embedding.evaluation.gold import read_gold
from embedding.exchange.placement import needed_placement
from embedding.exchange.wire import whole
from embedding.kernel.config import validate
from embedding.kernel.errors import PlatformError, RefusedError
from embedding.kernel.processes import give_back, stop_on_signals
from embedding.kernel.records import Window
from embedding.kernel.tracing import open_traces
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.figures.metrics import render
from embedding.server.flight.credentials import read_credentials
from embedding.server.flight.listening import end, listen
from embedding.server.flight.shell import ControlCall, FlightService, NodeSession
from embedding.server.grouping import LeaderLink, following
from embedding.server.parts import Companion
from embedding.server.policies.traits import POLICIES
from embedding.server.recovery.checkpoint import CheckpointFolder
from embedding.server.recovery.restoring import Recovery
from embedding.server.recovery.rewriting import NOTHING, check_rollback
from embedding.server.rowstore import RowShape
from embedding.server.snapshotting.live import LiveModel, read_gold_set
from embedding.server.snapshotting.snapshotter import Snapshotter
from embedding.server.state import ServerState
from embedding.server.status import build_status
from embedding.server.validation import check_nodes, check_report
from embedding.server.words.digests import WordDigests
from embedding.snapshots.store import SnapshotStore

if TYPE_CHECKING:
    from embedding.server.figures.http import HttpService

logger = logging.getLogger(__name__)

_STUCK_S = 5.0
_TICK_S = 0.5
_GIVE_BACK_TICKS = 120


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
        follows = following(config)
        config = config if follows is None else follows.following(config)
        self.config = config
        self._traces = open_traces("server")
        self._credentials = read_credentials(config)
        folder = None
        if config.state_dir is not None:
            folder = CheckpointFolder(config.state_dir, keep=config.keep_checkpoints)
        leader = None if follows is None else follows.upstream(config)
        self.state = ServerState(
            config,
            sync or SyncConfig(),
            RowShape(dim, seed=seed, buckets=buckets, biases=biases),
            epoch=None if folder is None else folder.next_epoch(),
            digests=None if folder is None else WordDigests(folder.waiting_key(), folder.refused()),
            upstream=leader,
        )
        self.recovery: Recovery | None = None
        self.link: LeaderLink | None = None
        self._companions: list[Companion] = []
        try:
            if folder is not None:
                self.recovery = Recovery(self.state, folder, every_s=config.checkpoint_every_s)
                self._companions.append(self.recovery)
            if not self.state.rows.local:
                identity = secrets.token_hex(16) if folder is None else folder.identity()
                processes = needed_placement().running(self.state.rows, config, identity=identity)
                # They start first and have the seed of the checkpoint.
                self._companions.insert(0, processes)
            if follows is not None and leader is not None:
                self.link = follows.link(self.state, leader, self._end)
                self._companions.append(self.link)
            self.snapshotter = Snapshotter(self.state, config, self._traces)
            self._companions.append(self.snapshotter)
            if config.cut == "watermark":
                self.state.accounts.on_complete = self.snapshotter.complete
        except BaseException:
            if folder is not None:
                folder.close()
            raise
        self._flight: FlightService | None = None
        self._http = http
        self._pages = pages
        self._ended: threading.Event | None = None
        self.wants_back: str | None = None
        self._stopping = threading.Event()
        self._ticker = threading.Thread(target=self._keep_ticking, name="ticker", daemon=True)

    @property
    def location(self) -> str:
        return "" if self._flight is None else self._flight.address

    @property
    def http_url(self) -> str:
        """Where /health, /metrics and /status are, http://host:port; empty without such pages."""
        return "" if self._http is None else self._http.url

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
            for companion in self._companions:
                companion.start()
            self._flight = listen(
                config, self.state, Controls(self).calls(), self._session, self._credentials
            )
        except BaseException:
            # Nothing of a start that failed stays: no process, line, port or lock of a folder.
            self._release()
            raise
        self._ticker.start()
        for companion in self._companions:
            companion.opened()
        if self._http is not None:
            if not begun:
                self._http.start()
            self._http.show(self)
        logger.info("parameter server at %s, status at %s", self.location, self.http_url or "none")

    def _release(self) -> None:
        """Lines, the folder's lock, the processes of shards and the port of the status."""
        for companion in reversed(self._companions):
            companion.stop()
        if self._http is not None:
            self._http.stop()

    def stop(self) -> None:
        """Apply what is held back, finish what is being written, free the ports."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self.state.close()
        if self._flight is not None:
            end(self._flight)
        if self._ticker.ident is not None:
            self._ticker.join(timeout=10)
        self.state.flush()
        self._release()
        self._traces.close()

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
        unkept = [why for each in reversed(self._companions) for why in each.unkept()]
        if unkept and self.wants_back is None:
            raise PlatformError(" ".join(unkept))

    def _keep_ticking(self) -> None:
        """Go on after an error: nothing else would notice a node that is gone."""
        ticks = itertools.count()
        while not self._stopping.wait(_TICK_S):
            try:
                self._tick(next(ticks))
            except Exception:
                logger.exception("the ticker goes on after an error")

    def _tick(self, number: int) -> None:
        self.state.tick()
        for companion in self._companions:
            companion.tick()
        if number % _GIVE_BACK_TICKS == _GIVE_BACK_TICKS - 1:
            give_back()

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
            for part in state.parts.values():
                part.check_rollback()
            self.wants_back = to
        # The answer goes out first.
        threading.Timer(0.2, self._ended.set).start()

    def status(self) -> dict[str, Any]:
        return {
            **build_status(self.state, self.snapshotter.refs(), self.snapshotter.sentences),
            "following": None if self.link is None else self.link.describe(),
            "ailing": self.ailing(),
        }

    @property
    def pids(self) -> dict[str, int]:
        """Of the processes beside this one, by name."""
        return {name: pid for each in self._companions for name, pid in each.pids.items()}

    def checkpoint(self, *, wait: bool) -> None:
        """Have all that is here in a checkpoint, at once or soon; UnavailableError: it is not.

        It is the leader's where there is one, else this server's and its shards'.
        """
        keeping = self.recovery or self.link
        for companion in self._companions if keeping is None else [keeping]:
            companion.checkpoint(wait=wait)

    def ailing(self) -> list[str]:
        """Why the server does not do all of its work, a sentence each."""
        reasons = []
        if self._stopping.is_set() or self.state.closing:
            reasons.append("the server is closing.")
        elif not self._ticker.is_alive():
            reasons.append("the thread that watches over nodes and windows has ended.")
        for companion in self._companions:
            reasons += companion.ailing()
        if not self.state.lock.acquire(timeout=_STUCK_S):
            return [*reasons, f"the tables were not free for {_STUCK_S:.0f} s."]
        reasons += [why for why in (self.state.changes.stuck, self.state.rows.full) if why]
        self.state.lock.release()
        return reasons

    def metrics(self) -> bytes:
        return render(self.status(), self.state.meters)

    @property
    def asks(self) -> Callable[[str], list[Any]]:
        """What a node is asked to hand in."""
        return self.snapshotter.asks if self.link is None else self.link.asks

    def catch_up(self) -> None:
        """Wait until what others know by now is here."""
        for part in self.state.parts.values():
            part.catch_up()

    def _session(self) -> NodeSession:
        want_checkpoint = partial(self.checkpoint, wait=False)
        return NodeSession(self.state, asks=self.asks, want_checkpoint=want_checkpoint)


CONTROL_CALLS = (
    *("ping", "status", "metrics", "report", "idle", "fence", "cut", "amend", "configure"),
    *("checkpoint", "rollback", "neighbours", "evaluate"),
)


class Controls:
    """The calls of one server; each takes a JSON object and returns a JSON-safe value."""

    def __init__(self, server: ParameterServer) -> None:
        self._server = server
        self._live = LiveModel(server.state)

    def calls(self) -> dict[str, ControlCall]:
        return {name: getattr(self, name) for name in CONTROL_CALLS}

    def ping(self, body: dict[str, Any]) -> bool:
        """Whether the server takes requests."""
        return not self._server.state.closing

    def status(self, body: dict[str, Any]) -> dict[str, Any]:
        return self._server.status()

    def metrics(self, body: dict[str, Any]) -> str:
        return self._server.metrics().decode()

    def report(self, body: dict[str, Any]) -> dict[str, Any]:
        """Figures of a node: {"node", "report"}; what it is to hand in: {"asks": …}."""
        report = body.get("report")
        if not isinstance(report, dict):
            raise RefusedError("report: a JSON object is accepted.")
        node = self._node(body)
        check_report(node, report, self._server.state.accounts.tracker.sources)
        self._server.state.report(node, report)
        return {"asks": self._server.asks(node)}

    def idle(self, body: dict[str, Any]) -> None:
        """A node has nothing to learn at the moment: {"node"}."""
        self._server.state.idle(self._node(body))

    def fence(self, body: dict[str, Any]) -> dict[str, int | str]:
        """Another node takes what a dead one read: {"node", "incarnation"}.

        It goes on behind `offset`, what the node said with the last push that was taken: that is
        number `sequence`, and `durable` the last one in a checkpoint.
        """
        node, incarnation = self._node(body), body.get("incarnation")
        if not isinstance(incarnation, str) or not incarnation:
            raise RefusedError("fence: the mark of an incarnation is needed.", kind="control")
        if self._server.link is not None:
            self._server.link.fence(node, incarnation)
        entry = self._server.state.fence(node, incarnation)
        if entry.accepted > entry.durable:
            self._server.checkpoint(wait=False)
        return {"sequence": entry.accepted, "durable": entry.durable, "offset": entry.offset}

    def cut(self, body: dict[str, Any]) -> dict[str, Any]:
        """Publish the snapshot of a window: {"start", "end"} in ISO 8601; with {"force": true}
        without what its nodes have not handed in."""
        try:
            bounds = [datetime.fromisoformat(str(body[name])) for name in ("start", "end")]
        except (KeyError, ValueError) as error:
            raise RefusedError("cut: start and end in ISO 8601 are accepted.") from error
        window = Window(*bounds)
        own = self._server.state.accounts.tracker.window(int(window.start.timestamp()))
        window = own if own == window else window  # by this server's clock
        if self._server.link is not None:
            return dict(self._server.link.cut(window).to_dict())
        self._server.catch_up()
        force = body.get("force") is True
        return dict(self._server.snapshotter.cut(window, force=force).to_dict())

    def amend(self, body: dict[str, Any]) -> dict[str, Any]:
        """Publish a revision of a window's snapshot: {"window": its start in Unix seconds}; with
        {"force": true} without what its nodes have not handed in."""
        if self._server.link is not None:
            raise RefusedError("amend: ask the server of the leading group.")
        start = whole(body, "window", least=-(2**40), of="amend")
        self._server.catch_up()
        ref, manifest = self._server.snapshotter.amend(start, force=body.get("force") is True)
        missing = [part.model_dump(mode="json") for part in manifest.missing]
        return {"id": ref.id, "revision": manifest.revision, "missing": missing}

    def configure(self, body: dict[str, Any]) -> dict[str, Any]:
        """Change the policy or its settings from now on."""
        state = self._server.state
        with state.lock:  # two at once would each leave what the other changed as it was
            before = state.machine.config.model_dump()
            sync = validate(SyncConfig, {**before, **body}, "configure")
            POLICIES.get(sync.policy)
            state.configure(sync)
        return sync.model_dump(mode="json")

    def checkpoint(self, body: dict[str, Any]) -> None:
        """Write a checkpoint; with {"wait": false} only begin to."""
        self._server.checkpoint(wait=body.get("wait", True) is True)

    def rollback(self, body: dict[str, Any]) -> None:
        """Go back to a snapshot and start again from there: {"to": id, or "nothing"}.

        Answers before the server ends; its next incarnation has another epoch. Refused while nodes
        are training: they would go on with what is to be forgotten.
        """
        to = body.get("to")
        if not isinstance(to, str) or not to:
            raise RefusedError("rollback: `to` with a snapshot's id is accepted.", kind="control")
        self._server.roll_back(to)

    def neighbours(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """Words nearest to one in the tables as they are now: {"word", "n": 10}."""
        word, n = body.get("word"), body.get("n", 10)
        if not isinstance(word, str) or type(n) is not int:
            raise RefusedError(
                "neighbours: a `word` and a whole number `n` are accepted.", kind="control"
            )
        return [each.__dict__ for each in self._live.neighbours(word, n)]

    def evaluate(self, body: dict[str, Any]) -> dict[str, float]:
        """Quality of the tables as they are now, on their device: {"gold": …} or {}."""
        gold = read_gold_set(body)
        path = self._server.state.config.gold
        if gold is None and path is not None:
            gold = read_gold(path)
        return self._live.evaluate(gold)

    def _node(self, body: dict[str, Any]) -> str:
        node = body.get("node")
        if not isinstance(node, str) or not node:
            raise RefusedError("a node's name is needed.")
        check_nodes(self._server.state.machine.board.members, [node])
        return node


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
