"""Pushes that the server has taken but that are in no checkpoint yet.

A node keeps them and sends them again after the server was restarted, so that nothing that was
acknowledged is lost.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, Protocol, TypeVar

from embedding.kernel.errors import BehindError, RefusedError


class Numbered(Protocol):
    """What is kept: a push of a node, or of a server group, of so many bytes.

    sequence  1, 2, 3, … by node, without a gap
    """

    @property
    def node(self) -> str: ...

    @property
    def sequence(self) -> int: ...

    @property
    def nbytes(self) -> int: ...


P = TypeVar("P", bound=Numbered)


class PushLog(Generic[P]):
    """A bounded list of a node's unconfirmed pushes, in the order of their sequence numbers.

    nbytes     of all of them
    confirmed  the last push that a checkpoint is known to hold
    """

    def __init__(self, *, max_pushes: int, max_bytes: int) -> None:
        self.max_pushes = max_pushes
        self.max_bytes = max_bytes
        self._pushes: deque[P] = deque()
        self.nbytes = 0
        self.confirmed = 0
        self._forgotten = 0

    def __len__(self) -> int:
        return len(self._pushes)

    @property
    def load(self) -> float:
        """How full it is: 0 empty, 1 full."""
        return max(len(self._pushes) / self.max_pushes, self.nbytes / self.max_bytes)

    def add(self, push: P) -> None:
        """Keep a push; RefusedError when its sequence number does not follow the last one's."""
        if self._pushes and push.sequence != self._pushes[-1].sequence + 1:
            raise RefusedError(
                f"push {push.sequence} of node {push.node}: "
                f"{self._pushes[-1].sequence + 1} is the next sequence number."
            )
        self._forgotten = max(self._forgotten, push.sequence - 1 - len(self._pushes))
        self._pushes.append(push)
        self.nbytes += push.nbytes

    def confirm(self, durable: int) -> int:
        """Forget pushes up to `durable`; returns how many were forgotten."""
        forgotten = 0
        while self._pushes and self._pushes[0].sequence <= durable:
            self.nbytes -= self._pushes.popleft().nbytes
            forgotten += 1
        self._forgotten = max(self._forgotten, durable)
        self.confirmed = max(self.confirmed, durable)
        return forgotten

    @property
    def held(self) -> tuple[int, int]:
        """The first push that is still here or will be made, and the last that was made."""
        return self._forgotten + 1, self._forgotten + len(self._pushes)

    def since(self, sequence: int) -> list[P]:
        """Pushes after `sequence` that are still here."""
        return [push for push in self._pushes if push.sequence > sequence]

    def begin(self, sequence: int) -> None:
        """A process begins behind push `sequence`, which an earlier one sent."""
        self._forgotten = sequence

    def drop_last(self, push: P) -> None:
        """Forget this push, the newest, if it is here: the server refused it."""
        if self._pushes and self._pushes[-1] is push:
            self.nbytes -= self._pushes.pop().nbytes

    def after(self, sequence: int) -> list[P]:
        """Pushes that the server has to get again when `sequence` is the last that it knows.

        BehindError when some that it does not know are no longer here: they were confirmed and the
        server lost its state folder, or an earlier process of this node sent them and they came
        into no checkpoint. This process's work since then cannot be put together with the server's.
        """
        if sequence < self._forgotten:
            raise BehindError(
                f"the server knows this node's pushes up to {sequence}, but those up to "
                f"{self._forgotten} are kept no longer: it lost them, or was started with another "
                "or an emptied state folder; start the node again."
            )
        return self.since(sequence)
