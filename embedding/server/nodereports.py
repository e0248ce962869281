"""What nodes said of themselves last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embedding.kernel.errors import RefusedError
from embedding.server.policies.board import ClockEntry


class NodeReports:
    """The server's lock guards it.

    digest  of the settings that all nodes share; empty until one tells it
    last    each node's own figures, and `at` the server's clock when they came
    servers   members that are servers themselves: nobody waits for their use of words
    guests    nodes of these by name, as they tell of them
    departed  nodes that said goodbye, or were fenced, here or there, and have not greeted since
    """

    def __init__(self, digest: str) -> None:
        self.digest = digest
        self.last: dict[str, dict[str, Any]] = {}
        self.at: dict[str, float] = {}
        self.servers: set[str] = set()
        self.guests: dict[str, dict[str, Any]] = {}
        self.departed: set[str] = set()

    def greet(self, node: str, digest: str) -> None:
        """A node greets; RefusedError for other settings than the nodes before it have."""
        if digest and self.digest and digest != self.digest:
            raise RefusedError(
                f"node {node}: its configuration has the digest {digest[:12]}, the server's "
                f"other nodes {self.digest[:12]}: start it with the same settings.",
                kind="greeting",
            )
        self.digest = self.digest or digest
        self.departed.discard(node)

    def put(self, node: str, report: dict[str, Any], now: float) -> None:
        """A report came."""
        self.last[node], self.at[node] = report, now

    def living(self, members: Mapping[str, ClockEntry]) -> set[str]:
        """Nodes that take part or rest, here or at another server."""
        present = {name for name, node in self.guests.items() if node.get("state") != "gone"}
        return present | {name for name, one in members.items() if one.present} - self.servers
