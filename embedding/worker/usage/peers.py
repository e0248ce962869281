"""The other nodes that read a corpus: what they remember, when a window is over for all of them."""

from __future__ import annotations

from embedding.exchange.headers import INTEGER, rows
from embedding.exchange.pasttexts import END, LEAVE_WINDOW, read, written
from embedding.exchange.session import Requests
from embedding.exchange.wire import Message
from embedding.worker.usage.past import PastTexts


class CorpusPeers:
    """Of one node.

    nodes        how many share the corpus, with this one
    most_tokens  in a message
    """

    def __init__(self, line: Requests, nodes: int, most_tokens: int) -> None:
        self._line = line
        self._nodes = nodes
        self._most = most_tokens

    def leave(self, window: int, until: int | None, past: PastTexts) -> list[tuple[int, PastTexts]]:
        """Hand over what is remembered; the windows to read now, with what all nodes remember.

        window  that is over for this node, and `until` the next one (Unix seconds of their starts);
                None: there is none
        """
        described, arrays = written(past.held(self._most))
        header = {
            "op": LEAVE_WINDOW,
            "window": window,
            "until": END if until is None else max(until, window + 1),
            "nodes": self._nodes,
            "keep": past.windows + 1,
            "enough": min(past.most, self._most),
            "past": described,
        }
        answer = self._line.request(Message(header, arrays))
        fields = {"window": INTEGER}
        due = rows(answer.header.get("close"), "close", fields, most=1_000, of=LEAVE_WINDOW)
        texts = read(answer)
        return [
            (start, past.of_all({each: parts for each, parts in texts.items() if each <= start}))
            for (start,) in due
        ]
