"""What the pages say: one catalogue a language, `locale/<language>.po`, in gettext's format.

A catalogue gives the text of each key. Its places `{name}` are filled by whoever asks; the words
for a window (`{unit}`, `{this}`, `{before}`, …) are filled here, by the unit of the windows shown.
`{name:을/를}` is the Korean particle that follows what `name` holds. A file more is a language
more; what it does not say is said in English.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from gettext import c2py
from pathlib import Path

from babel.messages.pofile import PoFileError, read_po
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from embedding.ask.answers import Answers
from embedding.kernel.errors import ConfigError

LOCALE = Path(__file__).parent / "locale"
FALLBACK = "en"
UNIT_KEYS = ("hour", "day", "week", "month", "period")
"""What a window may be; a period is one of no calendar's unit."""
UNIT_WORDS = ("unit", "this", "before", "earlier", "each")
"""Places that every text may have: what a window and its neighbours in time are called."""


_LABEL = re.compile(r"(\d{4})-(\d\d)(?:-(\d\d)(?:T(\d\d))?)?")
_RANGE = re.compile(r"(\d{8}T\d{4})_(\d{8}T\d{4})")


def unit_of(label: str) -> str:
    """What a window of this label is (`Window.label`), of UNIT_KEYS."""
    calendar, ends = _LABEL.fullmatch(label), _RANGE.fullmatch(label)
    if calendar is not None:
        return "hour" if calendar[4] else "day" if calendar[3] else "month"
    if ends is None:
        return "period"
    first, last = map(_moment, ends.groups())
    return "week" if last - first == timedelta(days=7) else "period"


def unit_shown(answers: Answers) -> str:
    """What the windows of a store are, of UNIT_KEYS: as the latest one is."""
    refs = answers.listing().refs
    return unit_of(refs[-1].label) if refs else "period"


def _moment(text: str) -> datetime:
    return datetime.strptime(text, "%Y%m%dT%H%M").replace(tzinfo=UTC)


@dataclass(frozen=True)
class TextCatalogue:
    """The texts of one language: their forms by key, and which of them a number takes."""

    forms: Mapping[str, tuple[str, ...]]
    plural: str

    def text(self, key: str, n: object = None) -> str | None:
        """The text, of several forms the one for `n`; None where there is none."""
        forms = self.forms.get(key)
        if not forms:
            return None
        if len(forms) == 1:
            return forms[0]
        plain = str(n).replace(",", "")
        return forms[c2py(self.plural)(int(plain))] if plain.isdigit() else forms[-1]


@cache
def catalogue(language: str) -> TextCatalogue:
    """The catalogue in `<language>.po`; raises ConfigError."""
    path = LOCALE / f"{language}.po"
    try:
        with path.open("rb") as file:
            messages = read_po(file, abort_invalid=True)
    except (OSError, ValueError, PoFileError) as error:
        raise ConfigError(f"{path}: no catalogue in gettext's format: {error}.") from error
    forms = {}
    for message in messages:
        if not message.id:
            continue
        text = message.string
        texts = [text] if isinstance(text, str) else [*(text or ())]
        key = message.id if isinstance(message.id, str) else message.id[0]
        if texts and all(texts):
            forms[key] = tuple(texts)
    return TextCatalogue(forms, messages.plural_expr)


def page_templates() -> Environment:
    """Jinja over the pages' templates, with autoescape; an unknown name in one is an error."""
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


LANGUAGES = tuple(sorted((path.stem for path in LOCALE.glob("*.po")), key=lambda n: (n != "ko", n)))
"""A language a file; Korean first, as the pages' text is mostly Korean."""


class PageText:
    """The texts of one language; unit: of the windows that are shown, of UNIT_KEYS."""

    def __init__(self, language: str, unit: str = "month") -> None:
        self.language = language if language in LANGUAGES else LANGUAGES[0]
        self.others = tuple(name for name in LANGUAGES if name != self.language)
        self._catalogues = (catalogue(self.language), catalogue(FALLBACK))
        self._unit = unit if unit in UNIT_KEYS else "period"

    def __call__(self, key: str, **values: object) -> str:
        """The text `key` with its places filled; `n` chooses between singular and plural."""
        return _FILL.vformat(self._text(key, values.get("n")), (), {**self._unit_words, **values})

    def span(self, n: int) -> str:
        """So many windows: `3 months`."""
        return self._text(f"span_{self._unit}", n).format(n=n)

    def window(self, label: str) -> str:
        """A window's label for reading: `2020년 2월`, `3 February 2020`; others as they are."""
        calendar = _LABEL.fullmatch(label)
        if calendar is not None:
            return self._time(*calendar.groups())
        span = _RANGE.fullmatch(label)
        if span is None:
            return label
        first, last = map(_moment, span.groups())
        whole = not (first.hour or first.minute or last.hour or last.minute)
        last -= timedelta(days=1 if whole else 0)
        ends = (f"{end:%Y-%m-%d}" if whole else f"{end:%Y-%m-%dT%H}" for end in (first, last))
        first_name, last_name = (self.window(end) for end in ends)
        return self("name_range", first=first_name, last=last_name)

    def _time(self, year: str, month: str, day: str | None, hour: str | None) -> str:
        names = self._text("months").split()
        kind = "name_hour" if hour else "name_day" if day else "name_month"
        name = names[int(month) - 1] if 1 <= int(month) <= len(names) else month
        return self(kind, year=year, month_name=name, day=int(day or 0), hour=int(hour or 0))

    def name_of(self, language: str) -> str:
        return catalogue(language).text("language_name") or language

    @property
    def _unit_words(self) -> dict[str, str]:
        texts = {name: self._text(f"{name}_{self._unit}") for name in UNIT_WORDS}
        return {
            **texts,
            **{n.capitalize(): text[:1].upper() + text[1:] for n, text in texts.items()},
        }

    def _text(self, key: str, n: object = None) -> str:
        for texts in self._catalogues:
            text = texts.text(key, n)
            if text is not None:
                return text
        raise KeyError(key)


class _Fill(string.Formatter):
    """Fills places; a format such as `을/를` is the particle after the value."""

    def format_field(self, value: object, format_spec: str) -> str:
        closed, slash, opened = format_spec.partition("/")
        if slash:
            return particle(str(value), closed, opened)
        return str(super().format_field(value, format_spec))


_FILL = _Fill()


def particle(word: str, closed: str, opened: str) -> str:
    """The Korean particle after a word: `closed` follows a final consonant (을), `opened` a vowel
    (를); both, as 을(를), after what is no Hangul.
    """
    last = ord(word[-1:] or " ") - 0xAC00
    if not 0 <= last < 11_172:
        return f"{closed}({opened})"
    return closed if last % 28 else opened


def choose(asked: str | None, remembered: str | None, accept: str) -> str:
    """The language: asked for in the address, kept in a cookie, or preferred by the browser."""
    for language in (asked, remembered):
        if language in LANGUAGES:
            return str(language)
    best, weight = LANGUAGES[0], -1.0
    for part in accept.split(","):
        tag, _, rest = part.strip().partition(";")
        language = tag.strip().lower().split("-")[0]
        if language not in LANGUAGES:
            continue
        try:
            q = float(rest.partition("=")[2]) if rest else 1.0
        except ValueError:
            q = 0.0
        if q > weight:
            best, weight = language, q
    return best
