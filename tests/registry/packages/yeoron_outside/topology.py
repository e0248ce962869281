"""A topology: every row by the server, and a count of the pushes."""

from __future__ import annotations

from typing import Any

from embedding.exchange.protocol import Ack, Push
from embedding.exchange.topologies.base import JoiningNode
from embedding.exchange.topologies.traits import TOPOLOGIES, TopologyTraits
from embedding.exchange.transport import Transport


class Counting:
    """A Transport that passes everything on."""

    def __init__(self, server: Transport) -> None:
        self._server = server
        self._pushes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    def push(self, push: Push) -> Ack:
        self._pushes += 1
        return self._server.push(push)

    def figures(self) -> dict[str, Any]:
        return {**self._server.figures(), "kind": "outside-ps", "pushes": self._pushes}


@TOPOLOGIES.register("outside-ps", TopologyTraits())
def counting(server: Transport, node: JoiningNode) -> Transport:
    del node
    return Counting(server)
