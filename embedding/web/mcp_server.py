"""The page's answers as tools of the Model Context Protocol: read only, over standard input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Annotated, Any, TypeVar

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from embedding import __version__
from embedding.ask.answers import Answers, LaterError
from embedding.ask.questions import (
    ChangeQuestion,
    CompareQuestion,
    ContrastQuestion,
    EvidenceQuestion,
    Question,
    ReportQuestion,
    SourcesQuestion,
    StoriesQuestion,
    WordQuestion,
)
from embedding.kernel.errors import YeoronError
from embedding.snapshots.store import LATEST
from embedding.trends.contrast import ContrastRow
from embedding.trends.history import WordHistory
from embedding.trends.plain import to_plain
from embedding.trends.rows import TrendRow
from embedding.web.answering import API_WAIT_S, Reading
from embedding.web.config import WebConfig
from embedding.web.findings import change_sentences, row_sentences, sureness, use_sentences
from embedding.web.links import PagePaths
from embedding.web.text import FALLBACK, PageText, unit_shown

A = TypeVar("A")
DOCUMENTS = 3
"""Addresses of documents given for a word."""
WINDOWS_SHOWN = 24
"""Windows of a word's history, the last ones."""
_INSTRUCTIONS = """What changed in what people write, by Yeoron: stories, words that moved, sources.
Every answer has figures, how sure they are, and addresses of documents as evidence. Claim no more
than is significant, name the addresses, and say when nothing stands out. `q` is the share of
findings this sure that chance alone would give. A window is its label, such as 2020-03, or latest.
"""
_Rows = Annotated[int, Field(ge=1, le=100, description="Rows at most.")]
WindowArgument = Annotated[str, Field(description="Label of a window (2020-03), or latest.")]


class WordTools:
    """The tools. Each answers with a JSON object, or fails with one sentence.

    page  address of the trends page, under which windows and words have theirs
    """

    def __init__(self, config: WebConfig, page: str) -> None:
        self._answers = Answers(config)
        self._paths = PagePaths(page.rstrip("/"))

    def stories(self, window: WindowArgument = LATEST, limit: _Rows = 10) -> dict[str, Any]:
        """What happened in a window: words that changed together, surest first.

        Each story says in sentences what happened and how sure that is (`said`), with figures, days
        and addresses of documents. Those that are not `significant` may be chance.
        """
        answer = self._ask(StoriesQuestion(window, limit))
        return {**to_plain(self._reading().stories(answer))}

    def moved(self, window: WindowArgument = LATEST, limit: _Rows = 10) -> dict[str, Any]:
        """Words whose meaning changed since the window before, surest first.

        Each has sentences, the words it was used like before and now, who wrote it, and addresses
        of documents. Rows that are not `significant` may be chance.
        """
        report = self._ask(ReportQuestion(window))
        t = self._reading().t
        rows = [
            {
                **self._row(row, row_sentences("moved", row, report, t), window),
                "page": self._paths.word(row.word),
            }
            for row in report.moved[:limit]
        ]
        return {
            "snapshot": to_plain(report.snapshot),
            "compared_with": to_plain(report.compared_with),
            "notes": to_plain(report.notes),
            "words_compared": report.compared("moved"),
            "rows": rows,
        }

    def word(self, word: Annotated[str, Field(description="The word.")]) -> dict[str, Any]:
        """One word over time: documents and sources that use it, its neighbours, since when it is
        used differently and how clear that is, and addresses of documents of the latest window.
        """
        history, change = self._ask(WordQuestion(word)), self._ask(ChangeQuestion(word))
        said = " ".join(change_sentences(change, self._reading().t)).strip()
        return {
            "changed": {**to_plain(change), "said": said},
            **_shown(history),
            **self._documents(word, history.points[-1].label),
            "page": self._paths.word(word),
        }

    def compare(
        self,
        first: Annotated[str, Field(description="A word.")],
        second: Annotated[str, Field(description="Another word.")],
    ) -> dict[str, Any]:
        """Two words over time: how often each is used, and how near they stand in each window
        (cosine: 1 is the same use, 0 is none in common).
        """
        pair = self._reading().compare(self._ask(CompareQuestion(first, second)))
        words = [{**_shown(h), **self._documents(h.word, h.points[-1].label)} for h in pair.words]
        nearness = to_plain(pair.nearness)[-WINDOWS_SHOWN:]
        return {"words": words, "nearness": nearness, "page": pair.page}

    def sources(
        self,
        window: WindowArgument = LATEST,
        first: Annotated[str, Field(description="A source, to compare; empty: none.")] = "",
        second: Annotated[str, Field(description="Another source, with `first`.")] = "",
        limit: _Rows = 10,
    ) -> dict[str, Any]:
        """The sources of a window and what each brought; with two of them the words that they use
        differently, surest first, in sentences and with addresses of documents.
        """
        answer = to_plain(self._ask(SourcesQuestion(window)))
        if bool(first) != bool(second):
            raise ToolError("name two sources, or none.")
        if not first:
            return {**answer}
        t = self._reading().t
        contrast = self._ask(ContrastQuestion(first, second, window, limit))
        rows = [
            self._row(row, use_sentences(row, first, second, t), window) for row in contrast.rows
        ]
        return {**answer, "words_compared": contrast.compared, "rows": rows}

    def server(self) -> MCPServer:
        """The server with these tools."""
        server = MCPServer(
            "yeoron", instructions=_INSTRUCTIONS, version=__version__, log_level="WARNING"
        )
        reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
        for tool in (self.stories, self.moved, self.word, self.compare, self.sources):
            server.add_tool(_in_a_sentence(tool), annotations=reads)
        return server

    def _ask(self, question: Question[A]) -> A:
        return question.answer(self._answers, API_WAIT_S)

    def _reading(self) -> Reading:
        # A model reads English; the words themselves are as they were written.
        return Reading(PageText(FALLBACK, unit_shown(self._answers)), self._paths)

    def _row(
        self, row: TrendRow | ContrastRow, sentences: Sequence[str], window: str
    ) -> dict[str, Any]:
        said = [*sentences, sureness(row.q, self._reading().t, significant=row.significant)]
        return {**to_plain(row), "said": said, **self._documents(row.word, window)}

    def _documents(self, word: str, window: str) -> dict[str, Any]:
        if not self._answers.has_evidence:
            return {"documents": []}
        answer = self._ask(EvidenceQuestion(word, window, DOCUMENTS))
        return {"documents": to_plain(answer.documents)}


def _shown(history: WordHistory) -> dict[str, Any]:
    points = to_plain(history.points)[-WINDOWS_SHOWN:]
    return {"word": history.word, "windows": points, "notes": to_plain(history.notes)}


def _in_a_sentence(tool: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """What cannot be answered is the tool's failure, with the sentence that says why."""

    @wraps(tool)
    def answered(*args: Any, **values: Any) -> dict[str, Any]:
        try:
            return tool(*args, **values)
        except YeoronError as error:
            raise ToolError(str(error)) from error
        except LaterError as error:
            raise ToolError("the answer is being computed: ask again.") from error

    return answered
