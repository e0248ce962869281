"""Records as they are written become lines of a dated corpus."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from json.encoder import encode_basestring

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embedding.importing.dates import DateReading
from embedding.importing.readers import RawRecords, WrongRecord
from embedding.kernel.records import TimeArray
from embedding.sources.base import Pseudonyms
from embedding.sources.markup import plain_text

_MOST_SOURCE = 80
"""Characters of a source's name, at most, as in a dated corpus."""
_UNFIT = r"[\x00-\x1f\x7f\x{80}-\x{9f}]+"
_WRAPPED = r'^="(.*)"$'
"""How Excel is told to take a value for text."""
_FORMULA = r"^=\s*[A-Za-z_.]+\s*\(|^=\s*[-+(\d$]|^=[A-Z]{1,3}\d"
_NOTHING = pa.array(["", "NaN", "nan", "NULL", "null", "None", "\\N", "#N/A", "N/A", "<NA>", "NaT"])
"""How programs write that a value is missing."""
_SHOWN = 40
_SECONDS = pa.timestamp("s", "UTC")
_FORM = "%Y-%m-%dT%H:%M:%SZ"
_AUTHORS = 1 << 16


@dataclass(frozen=True)
class CorpusRecords:
    """Lines of a dated corpus, each with its line end.

    when   float64 [n], Unix seconds
    wrong  records that are left out
    """

    lines: list[bytes]
    when: TimeArray
    wrong: tuple[WrongRecord, ...]


class Conversion:
    """Makes lines of records. Names of authors become pseudonyms, and times are in UTC.

    mapping  column of each field
    """

    def __init__(
        self, mapping: Mapping[str, str], dates: DateReading, pseudonyms: Pseudonyms
    ) -> None:
        self._mapping = mapping
        self._dates = dates
        self._pseudonym = lru_cache(_AUTHORS)(pseudonyms.of)

    def convert(self, raw: RawRecords) -> CorpusRecords:
        """Those with a date and a text; the others with the reason."""
        if not raw.numbers:
            return CorpusRecords([], np.empty(0), raw.wrong)
        field = {name: self._field(raw, name) for name in ("date", "text", "title", "source")}
        author = self._field(raw, "author").to_pylist()
        dated = self._dates.times(field["date"])
        when = dated.when
        formula = pc.fill_null(pc.match_substring_regex(field["text"], _FORMULA), False)
        good = pc.and_(pc.and_(when.is_valid(), field["text"].is_valid()), pc.invert(formula))
        wrong = self._reasons(raw, field, when, formula) if not pc.all(good).as_py() else ()
        kept = np.flatnonzero(good.to_numpy(zero_copy_only=False))
        chosen = pa.array(kept)
        when = pc.floor_temporal(when.take(chosen), unit="second").cast(_SECONDS)
        shown = pc.strftime(when, _FORM)
        shown = pc.if_else(dated.days.take(chosen), pc.utf8_slice_codeunits(shown, 0, 10), shown)
        texts, titles, sources = (
            field[name].take(chosen).to_pylist() for name in ("text", "title", "source")
        )
        lines = [
            self._line(date, text, title, source, author[at])
            for date, text, title, source, at in zip(
                shown.to_pylist(), texts, titles, sources, kept.tolist(), strict=True
            )
        ]
        seconds: TimeArray = when.cast(pa.int64()).to_numpy().astype(np.float64)
        return CorpusRecords(lines, seconds, (*raw.wrong, *wrong))

    def _field(self, raw: RawRecords, name: str) -> pa.StringArray:
        """A field's values without space around them, null where there is none."""
        column = raw.columns.get(self._mapping[name]) if name in self._mapping else None
        if column is None:
            return pa.nulls(len(raw.numbers), pa.string())
        found = pc.utf8_trim_whitespace(column)
        wrapped = pc.starts_with(found, '="')
        if pc.any(wrapped).as_py():
            found = pc.replace_substring_regex(found, _WRAPPED, r"\1")
        if name == "source":
            found = pc.utf8_slice_codeunits(
                pc.utf8_trim_whitespace(pc.replace_substring_regex(found, _UNFIT, " ")),
                0,
                _MOST_SOURCE,
            )
        if name in ("text", "title"):
            found = _without_markup(found)
        return pc.if_else(pc.is_in(found, _NOTHING), pa.scalar(None, pa.string()), found)

    def _line(
        self, date: str, text: str, title: str | None, source: str | None, author: str | None
    ) -> bytes:
        quoted = encode_basestring
        line = f'{{"date": "{date}"'
        if source:
            line += f', "source": {quoted(source)}'
        if author:
            line += f', "author": "{self._pseudonym(source or "", author)}"'
        if title and title != text:
            line += f', "title": {quoted(title)}'
        return f'{line}, "text": {quoted(text)}}}\n'.encode()

    @staticmethod
    def _reasons(
        raw: RawRecords,
        field: Mapping[str, pa.StringArray],
        when: pa.TimestampArray,
        formula: pa.BooleanArray,
    ) -> tuple[WrongRecord, ...]:
        dated, texts = when.is_valid().to_pylist(), field["text"].is_valid().to_pylist()
        found = []
        for at, (has_date, has_text, computes) in enumerate(
            zip(dated, texts, formula.to_pylist(), strict=True)
        ):
            if has_date and has_text and not computes:
                continue
            if not has_text:
                reason = "no text"
            elif computes:
                reason = "a formula in place of a text"
            else:
                value = field["date"][at].as_py()
                reason = "no date" if value is None else f"{_short(value)} is no date"
            found.append(WrongRecord(raw.numbers[at], reason))
        return tuple(found)


def _without_markup(values: pa.StringArray) -> pa.StringArray:
    """Texts written in HTML as their words; the others as they are."""
    places = np.flatnonzero(
        pc.fill_null(pc.match_substring_regex(values, "[<&]"), False).to_numpy(zero_copy_only=False)
    )
    if not len(places):
        return values
    texts = values.take(pa.array(places)).to_pylist()
    mask = np.zeros(len(values), dtype=bool)
    mask[places] = True
    return pc.replace_with_mask(
        values, pa.array(mask), pa.array([plain_text(text) for text in texts], pa.string())
    )


def _short(value: str) -> str:
    shown = " ".join(re.sub(r"[^\w\s.:/+-]", "?", value).split())
    return repr(shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…")
