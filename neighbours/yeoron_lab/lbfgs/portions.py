"""Who computes which portion of a batch: small ones, one at a time, the slowest twice.

A pure state machine of Dean 2012, section 4.2: "the coordinator assigns each of the N model
replicas a small portion of work, much smaller than 1/Nth of the total size of a batch, and assigns
replicas new portions whenever they are free. […] To further manage slow model replicas at the end
of a batch, Sandblaster schedules multiple copies of the outstanding portions and uses the result
from whichever model replica finishes first." A portion that must not leave its node (`shared` is
false) is given to that node alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple


class Name(NamedTuple):
    """A portion: whose memory it was drawn from, and its number there."""

    node: str
    number: int


@dataclass
class _Portion:
    """shared: any node may compute it; at: node → when it was given to it, in turns."""

    shared: bool
    at: dict[str, int] = field(default_factory=dict)
    counted: bool = False


class Portions:
    """The portions of one batch, evaluated again and again at different rows.

    copies       nodes that may compute a portion beside the first one, at the end of a batch
    evaluation   number of the evaluation that is under way; 0: none was begun
    by_node      portions that each node counted for, in all evaluations
    again        portions that were given out twice at the end of a batch; won: and the later node
                 was the first to answer
    """

    def __init__(self, copies: int) -> None:
        self.copies = copies
        self.evaluation = 0
        self.by_node: dict[str, int] = {}
        self.again = 0
        self.won = 0
        self._portions: dict[Name, _Portion] = {}
        self._turn = 0

    def __len__(self) -> int:
        return len(self._portions)

    def add(self, name: Name, *, shared: bool) -> None:
        """One more portion; adding it again changes nothing."""
        self._portions.setdefault(name, _Portion(shared))

    def begin(self) -> None:
        """Every portion is wanted at new rows; answers for the old ones count no more."""
        self.evaluation += 1
        for portion in self._portions.values():
            portion.at, portion.counted = {}, False

    @property
    def complete(self) -> bool:
        return all(portion.counted for portion in self._portions.values())

    def ask(self, node: str) -> Name | None:
        """What `node` computes next, None when nothing is left for it.

        A node computes one portion at a time: what it was given before and has not answered, its
        answer or the question was lost.
        """
        self._free(node)
        offers = [
            (name, portion)
            for name, portion in self._portions.items()
            if not portion.counted and (portion.shared or name.node == node)
        ]
        fresh = [name for name, portion in offers if not portion.at]
        if fresh:
            # Own portions first, whose text is at hand; then of the node that has most left.
            left = Counter(name.node for name in fresh)
            first = min(fresh, key=lambda name: (name.node != node, -left[name.node], name))
            return self._give(node, first)
        spare = [(min(p.at.values()), name) for name, p in offers if len(p.at) <= self.copies]
        if not spare:
            return None
        self.again += 1
        return self._give(node, min(spare)[1])

    def done(self, node: str, name: Name, evaluation: int) -> bool:
        """`node` answered: whether the answer counts. It does for the first of each portion."""
        portion = self._portions.get(name)
        if portion is None or evaluation != self.evaluation or portion.counted:
            return False
        if not (portion.shared or name.node == node):
            return False
        given = portion.at.get(node)
        self.won += given is not None and given > min(portion.at.values())
        portion.counted = True
        self.by_node[node] = self.by_node.get(node, 0) + 1
        return True

    def gone(self, nodes: Iterable[str]) -> list[Name]:
        """These nodes compute nothing any more: their work is open again.

        Returns the portions that nobody else can compute; they are no longer in the batch.
        """
        lost = []
        for node in nodes:
            self._free(node)
            lost += [n for n, p in self._portions.items() if n.node == node and not p.shared]
        for name in lost:
            del self._portions[name]
        return lost

    def _free(self, node: str) -> None:
        for portion in self._portions.values():
            if not portion.counted:
                portion.at.pop(node, None)

    def _give(self, node: str, name: Name) -> Name:
        self._turn += 1
        self._portions[name].at[node] = self._turn
        return name
