"""Incarnations of nodes that may not push any more; on the disk before others read their sources.

JSON lines `{"node", "life"}`: `life` is the incarnation, by the name that it has in stores. A
checkpoint comes later: a server that was killed in between would
take the pushes of a node that was stopped while its sources were given away, and that comes back.
A torn last line was never answered, so nobody goes on because of it, and it is left out.
"""

from __future__ import annotations

import json
from pathlib import Path

from embedding.kernel.durable import append, appending, replaced
from embedding.kernel.errors import UnavailableError

FENCED = 16
"""Incarnations of each node that are remembered, the latest ones. One is forgotten after its node
was fenced sixteen times more; a process that was stopped for so long is not expected back."""


class Fences:
    """The file, or with None nothing but what is told in this incarnation of the server."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self.incarnations: dict[str, tuple[str, ...]] = {}
        """Fenced ones by node."""
        if path is not None and path.exists():
            self._read(path)

    def add(self, node: str, incarnation: str) -> bool:
        """Fence an incarnation, on the disk on return; False when it was fenced before.

        UnavailableError: it cannot be written now, and nobody may go on with its sources.
        """
        known = self.incarnations.get(node, ())
        if incarnation in known:
            return False
        if self._path is not None:
            try:
                with appending(self._path) as file:
                    append(file, _line(node, incarnation))
            except OSError as error:
                raise UnavailableError(
                    f"{self._path}: {error.strerror}: node {node} is not fenced now."
                ) from error
        self.incarnations[node] = (*known[-(FENCED - 1) :], incarnation)
        return True

    def holds(self, node: str, incarnation: str) -> bool:
        """Whether this incarnation may not push any more."""
        return bool(incarnation) and incarnation in self.incarnations.get(node, ())

    def _read(self, path: Path) -> None:
        """Read back, and write again without what is forgotten or torn."""
        for line in path.read_bytes().split(b"\n")[:-1]:
            try:
                entry = json.loads(line)
                node, incarnation = str(entry["node"]), str(entry["life"])
            except (ValueError, KeyError, TypeError):
                continue
            known = [each for each in self.incarnations.get(node, ()) if each != incarnation]
            self.incarnations[node] = (*known[-(FENCED - 1) :], incarnation)
        with replaced(path) as file:
            for node, incarnations in self.incarnations.items():
                file.writelines(_line(node, incarnation) for incarnation in incarnations)


def _line(node: str, incarnation: str) -> bytes:
    return json.dumps({"node": node, "life": incarnation}, ensure_ascii=False).encode() + b"\n"
