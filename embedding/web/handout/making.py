"""Making a report without the page: for the command line, and for a mail."""

from __future__ import annotations

from dataclasses import dataclass

from embedding.kernel.errors import InputError
from embedding.trends.rows import TrendReport
from embedding.web.answering import Reading
from embedding.web.answers import Answers
from embedding.web.config import WebConfig
from embedding.web.handout.content import make_handout
from embedding.web.handout.writing import named_format, write_handout
from embedding.web.links import PagePaths
from embedding.web.text import LANGUAGES, PageText


@dataclass(frozen=True)
class Attachment:
    """A file that goes with a mail."""

    name: str
    media_type: str
    content: bytes


class HandoutMaker:
    """Writes reports of one store in one language.

    page  address of the trends page, under which windows and words have theirs

    Raises InputError for a language that has no catalogue.
    """

    def __init__(self, config: WebConfig, page: str, language: str) -> None:
        if language not in LANGUAGES:
            accepted = ", ".join(LANGUAGES)
            raise InputError(f"language {language[:40]!r}: accepted are {accepted}.")
        self._config = config
        self._answers = Answers(config)
        self._paths = PagePaths(page.rstrip("/"))
        self._language = language

    def report(self, window: str) -> TrendReport:
        """The report of a window (label, id or latest), however long it takes to compute."""
        reader = self._answers.reader
        return reader.report(reader.open(window).id, wait_s=None)

    def attachment(self, report: TrendReport, format: str) -> Attachment:
        """The report as a file; raises as `write_handout`."""
        chosen = named_format(format)
        to = Reading(PageText(self._language, self._answers.reader.unit()), self._paths)
        handout = make_handout(
            report, self._answers.story_documents, to, self._config.trends.false_discovery
        )
        content = write_handout(handout, format, self._config.chromium)
        name = f"yeoron-{report.snapshot.label}.{format}"
        return Attachment(name, chosen.media_type, content)
