"""A report to hand on: its formats by name, and making one without the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from embedding.ask.answers import Answers
from embedding.ask.questions import ReportQuestion
from embedding.kernel.errors import InputError
from embedding.web.answering import Reading
from embedding.web.config import WebConfig
from embedding.web.handout.content import Handout, make_handout
from embedding.web.handout.html import as_html
from embedding.web.links import PagePaths
from embedding.web.text import LANGUAGES, PageText, unit_shown


@dataclass(frozen=True)
class HandoutFormat:
    """How a report is written.

    write  with the Chromium that prints PDF; None: the system's. Raises ModuleNotFoundError without
           the extra `report`, PlatformError where no Chromium can be started
    needs  the library without which it cannot be; empty: none
    """

    media_type: str
    write: Callable[[Handout, Path | None], bytes]
    needs: str = ""

    @property
    def available(self) -> bool:
        return not self.needs or find_spec(self.needs) is not None


def named_format(name: str) -> HandoutFormat:
    """A format by its name; InputError that names those accepted."""
    if name not in FORMATS:
        raise InputError(f"report format {name[:40]!r}: accepted are {', '.join(FORMATS)}.")
    return FORMATS[name]


def _pdf(handout: Handout, chromium: Path | None) -> bytes:
    from embedding.web.handout.pdf import print_pdf

    return print_pdf(as_html(handout), chromium)


def _slides(handout: Handout, _: Path | None) -> bytes:
    from embedding.web.handout.slides import as_slides

    return as_slides(handout)


_SLIDES = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
FORMATS: Mapping[str, HandoutFormat] = {
    "html": HandoutFormat("text/html; charset=utf-8", lambda handout, _: as_html(handout).encode()),
    "pdf": HandoutFormat("application/pdf", _pdf, "playwright"),
    "pptx": HandoutFormat(_SLIDES, _slides, "pptx"),
}


@dataclass(frozen=True)
class Attachment:
    """A file that goes with a mail."""

    name: str
    media_type: str
    content: bytes


class HandoutMaker:
    """Writes reports of one store in one language, from `answers` where somebody has them already.

    page  address of the trends page, under which windows and words have theirs

    Raises InputError for a language that has no catalogue.
    """

    def __init__(
        self, config: WebConfig, page: str, language: str, answers: Answers | None = None
    ) -> None:
        if language not in LANGUAGES:
            raise InputError(f"language {language[:40]!r}: accepted are {', '.join(LANGUAGES)}.")
        self._config = config
        self._answers = answers or Answers(config)
        self._paths = PagePaths(page.rstrip("/"))
        self._language = language

    def attachment(self, window: str, format: str) -> Attachment:
        """The report of a window as a file; raises as `named_format` and `HandoutFormat.write`."""
        chosen, report = named_format(format), ReportQuestion(window).answer(self._answers)
        to = Reading(PageText(self._language, unit_shown(self._answers)), self._paths)
        handout = make_handout(
            report, self._answers.story_documents, to, self._config.trends.false_discovery
        )
        name = f"yeoron-{report.snapshot.label}.{format}"
        return Attachment(name, chosen.media_type, chosen.write(handout, self._config.chromium))
