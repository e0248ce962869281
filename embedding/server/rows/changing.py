"""A change of rows, carried out as a whole, though memory may be short in the middle of it."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import Push
from embedding.kernel.errors import UnavailableError

logger = logging.getLogger(__name__)

Step = Callable[[], object]
"""Part of a change: all of it is done when it returns, nothing when it finds no memory."""
_Plan = Callable[[], Iterable[Step]]
"""The steps of a change, in order; nothing has changed when it returns or raises."""


class Changing:
    """One change after the other; what was begun goes on where it stopped. Not thread-safe.

    who    names the holder of the rows
    stuck  a sentence that says why a change cannot be carried out; None while all can
    """

    def __init__(self, who: str) -> None:
        self._who = who
        self._left: deque[Step] | None = None
        self.stuck: str | None = None

    @property
    def begun(self) -> bool:
        """Whether a part of a change is in the rows, and the rest is not."""
        return self._left is not None

    def carry_out(self, plan: _Plan) -> bool:
        """Carry a change out, or what is left of it; False when there was no memory for it.

        Then, and when anything else was raised, it is to be tried again before any other change, or
        given up.
        """
        try:
            steps = deque(plan()) if self._left is None else self._left
            while steps:
                steps[0]()
                steps.popleft()
                self._left = steps
        except (MemoryError, RuntimeError) as error:  # what torch raises is a RuntimeError
            if self.stuck is None:
                logger.exception("rows could not be changed")
            why = " ".join(str(error).split())[:200]
            self.stuck = (
                f"{self._who} could not change its rows, and tries again: "
                f"{type(error).__name__}{f' ({why})' if why else ''}."
            )
            return False
        self._left = self.stuck = None
        return True

    def give_up(self) -> None:
        self._left = self.stuck = None

    def refuse(self) -> None:
        """UnavailableError that says why nothing can be read or taken now."""
        raise UnavailableError(str(self.stuck))


class ChangeQueue:
    """Changes in the order in which they were asked for; none overtakes one that is stuck."""

    def __init__(self, who: str) -> None:
        self._changing = Changing(who)
        self._plans: deque[_Plan] = deque()

    @property
    def stuck(self) -> str | None:
        return self._changing.stuck

    @property
    def waiting(self) -> int:
        return len(self._plans)

    def carry_out(self, plan: _Plan) -> None:
        """Change rows, now or as soon as there is memory for all that was asked for before."""
        self._plans.append(plan)
        self.advance()

    def advance(self) -> None:
        """Carry out what there is memory for by now.

        Any other error is raised, once: what is left of its change would fail again.
        """
        while self._plans:
            try:
                if not self._changing.carry_out(self._plans[0]):
                    return
            except BaseException:
                self._changing.give_up()
                self._plans.popleft()
                raise
            self._plans.popleft()

    def check(self) -> None:
        """Try what is left; UnavailableError while it cannot be carried out."""
        self.advance()
        if self._plans:
            self._changing.refuse()


def deltas_of(
    pushes: Sequence[Push], scale: float, combine: Callable[[Sequence[Push]], list[Push]] | None
) -> Iterator[tuple[RowDelta, str | None]]:
    """The deltas of pushes that are applied together, and who has each of them already.

    That is the node itself where it keeps rows, and its deltas come into them as they are.

    combine  makes of the pushes those that are applied; None: as they are
    """
    alone = scale == 1.0 and combine is None
    for push in pushes if combine is None else combine(pushes):
        for delta in push.deltas:
            yield delta, push.node if alone and push.keeps else None
