"""The formats of a report to hand on, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from embedding.kernel.errors import InputError
from embedding.web.handout.content import Handout
from embedding.web.handout.html import as_html


@dataclass(frozen=True)
class HandoutFormat:
    """How a report is written.

    needs  the library without which it cannot be; empty: none
    """

    media_type: str
    write: Callable[[Handout, Path | None], bytes]
    needs: str = ""

    @property
    def available(self) -> bool:
        """Whether it can be written here."""
        return not self.needs or find_spec(self.needs) is not None


def write_handout(handout: Handout, name: str, chromium: Path | None) -> bytes:
    """A report in the format `name`.

    chromium  that prints PDF; None: the system's
    Raises InputError for an unknown format, ModuleNotFoundError without the extra `report`,
    PlatformError where no Chromium can be started.
    """
    return named_format(name).write(handout, chromium)


def named_format(name: str) -> HandoutFormat:
    """A format by its name; InputError that names those accepted."""
    if name not in FORMATS:
        raise InputError(f"report format {name[:40]!r}: accepted are {', '.join(FORMATS)}.")
    return FORMATS[name]


def _html(handout: Handout, _: Path | None) -> bytes:
    return as_html(handout).encode()


def _pdf(handout: Handout, chromium: Path | None) -> bytes:
    from embedding.web.handout.pdf import print_pdf

    return print_pdf(as_html(handout), chromium)


def _slides(handout: Handout, _: Path | None) -> bytes:
    from embedding.web.handout.slides import as_slides

    return as_slides(handout)


_SLIDES = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
FORMATS: Mapping[str, HandoutFormat] = {
    "html": HandoutFormat("text/html; charset=utf-8", _html),
    "pdf": HandoutFormat("application/pdf", _pdf, "playwright"),
    "pptx": HandoutFormat(_SLIDES, _slides, "pptx"),
}
