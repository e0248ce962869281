"""Control calls: what can be asked of a running server beside the streams of its nodes."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol

from embedding.evaluation.gold import read_gold
from embedding.exchange.headers import whole
from embedding.kernel.config import validate
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import Window
from embedding.server.config import SyncConfig
from embedding.server.flight.shell import ControlCall
from embedding.server.grouping import Followers, LeaderLink
from embedding.server.policies.traits import POLICIES
from embedding.server.snapshotting.live import LiveModel, read_gold_set
from embedding.server.snapshotting.snapshotter import Snapshotter
from embedding.server.state import ServerState
from embedding.server.validation import check_nodes, check_report


class Controlled(Protocol):
    """What the calls act on."""

    state: ServerState
    snapshotter: Snapshotter

    groups: Followers

    @property
    def link(self) -> LeaderLink | None:
        """The line to the leading group, where there is another."""

    def checkpoint(self, *, wait: bool) -> None:
        """Have all that is here in a checkpoint, at once or soon; UnavailableError: it is not."""

    def status(self) -> dict[str, Any]:
        """The status JSON."""

    def metrics(self) -> bytes:
        """The metrics in Prometheus' text format."""

    def roll_back(self, to: str) -> None:
        """End, and begin again from a snapshot."""


class Controls:
    """The calls of one server; each takes a JSON object and returns a JSON-safe value."""

    def __init__(self, server: Controlled) -> None:
        self._server = server
        self._live = LiveModel(server.state)

    def calls(self) -> dict[str, ControlCall]:
        return {
            "ping": self.ping,
            "status": self.status,
            "metrics": self.metrics,
            "report": self.report,
            "idle": self.idle,
            "fence": self.fence,
            "cut": self.cut,
            "amend": self.amend,
            "configure": self.configure,
            "checkpoint": self.checkpoint,
            "rollback": self.rollback,
            "neighbours": self.neighbours,
            "evaluate": self.evaluate,
        }

    def ping(self, body: dict[str, Any]) -> bool:
        """Whether the server takes requests."""
        del body
        return not self._server.state.closing

    def status(self, body: dict[str, Any]) -> dict[str, Any]:
        del body
        return self._server.status()

    def metrics(self, body: dict[str, Any]) -> str:
        del body
        return self._server.metrics().decode()

    def report(self, body: dict[str, Any]) -> dict[str, Any]:
        """Figures of a node: {"node", "report"}; what it is to hand in: {"asks": …}."""
        report = body.get("report")
        if not isinstance(report, dict):
            raise RefusedError("report: a JSON object is accepted.")
        node = self._node(body)
        check_report(node, report, self._server.state.accounts.tracker.sources)
        self._server.state.report(node, report)
        link = self._server.link
        asks = self._server.snapshotter.asks if link is None else link.asks
        return {"asks": asks(node)}

    def idle(self, body: dict[str, Any]) -> None:
        """A node has nothing to learn at the moment: {"node"}."""
        node = self._node(body)
        self._server.state.idle(node)

    def fence(self, body: dict[str, Any]) -> dict[str, int | str]:
        """Another node takes what a dead one read: {"node", "life"}.

        It goes on behind `place`, what the node said with the last push that was taken: that is
        number `sequence`, and `durable` the last one in a checkpoint.
        """
        node, incarnation = self._node(body), body.get("life")
        if not isinstance(incarnation, str) or not incarnation:
            raise RefusedError("fence: the mark of an incarnation is needed.", kind="control")
        if self._server.link is not None:
            self._server.link.fence(node, incarnation)
        entry = self._server.state.fence(node, incarnation)
        if entry.accepted > entry.durable:
            self._server.checkpoint(wait=False)
        return {"sequence": entry.accepted, "durable": entry.durable, "place": entry.offset}

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
        self._server.groups.catch_up()
        force = body.get("force") is True
        return dict(self._server.snapshotter.cut(window, force=force).to_dict())

    def amend(self, body: dict[str, Any]) -> dict[str, Any]:
        """Publish a revision of a window's snapshot: {"window": its start in Unix seconds}; with
        {"force": true} without what its nodes have not handed in."""
        if self._server.link is not None:
            raise RefusedError("amend: ask the server of the leading group.")
        start = whole(body, "window", least=-(2**40), of="amend")
        self._server.groups.catch_up()
        ref, manifest = self._server.snapshotter.amend(start, force=body.get("force") is True)
        missing = [one.model_dump(mode="json") for one in manifest.missing]
        return {"id": ref.id, "revision": manifest.revision, "missing": missing}

    def configure(self, body: dict[str, Any]) -> dict[str, Any]:
        """Change the policy or its settings from now on."""
        state = self._server.state
        with state.lock:  # two at once would each leave what the other changed as it was
            before = state.machine.config.model_dump()
            sync = validate(SyncConfig, {**before, **body}, "configure")
            POLICIES.get(sync.policy)
            self._server.groups.check(sync)
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
