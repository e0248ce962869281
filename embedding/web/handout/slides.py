"""The report as slides (PPTX): charts that can be edited, addresses that can be followed."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.dml.color import RGBColor
from pptx.enum.chart import XL_CHART_TYPE, XL_LEGEND_POSITION
from pptx.enum.lang import MSO_LANGUAGE_ID
from pptx.util import Emu, Inches, Pt

from embedding.web import formats
from embedding.web.handout.content import Handout, HandoutRanking, HandoutStory
from embedding.web.handout.html import LINE_COLOURS

_WIDE, _HIGH = Inches(13.333), Inches(7.5)
_MARGIN = Inches(0.7)
_BLANK = 6
"""The layout of the default template that has no places."""
_INK, _SOFT, _ACCENT = RGBColor(0x1D, 0x1C, 0x1A), RGBColor(0x5B, 0x57, 0x50), RGBColor(15, 92, 92)
_SOURCES, _ROWS = 12, 8
"""Sources, and rows of a ranking, that a slide has room for."""
_LINE = tuple[str, str]
"""A text and the address that it leads to; empty: none."""


@dataclass(frozen=True)
class _Box:
    """Where a text stands, in inches."""

    top: float
    height: float
    left: float = 0.7
    width: float = 11.9


@dataclass(frozen=True)
class _Font:
    """How a text looks; size in points."""

    size: int
    bold: bool = False
    colour: RGBColor = _INK


def as_slides(handout: Handout) -> bytes:
    """The file: a title, a slide for each story and each ranking, what was read, the method."""
    deck = Presentation()
    deck.slide_width, deck.slide_height = _WIDE, _HIGH
    deck.core_properties.title = _plain(handout.title)
    deck.core_properties.language = handout.language
    first = deck.slides.add_slide(deck.slide_layouts[_BLANK])
    against = f" · {handout.against}" if handout.against else ""
    _write(first, [(handout.title + against, "")], _Box(1.2, 0.6), _Font(18, colour=_SOFT))
    _write(first, [(handout.headline, "")], _Box(1.8, 1.6), _Font(44, bold=True))
    lines = [(text, "") for text in (*handout.lede, *handout.notes)]
    if not handout.stories:
        lines.insert(0, (handout.stories_none, ""))
    _write(first, lines, _Box(3.6, 2.8), _Font(18))
    for story in handout.stories:
        _story(deck, handout, story)
    for ranking in handout.rankings:
        _ranking(deck, ranking)
    _sources(deck, handout)
    output = io.BytesIO()
    deck.save(output)
    return output.getvalue()


def _story(deck: Any, handout: Handout, story: HandoutStory) -> None:
    slide = _titled(deck, story.title)
    _write(slide, [(text, "") for text in story.sentences], _Box(1.35, 1.2), _Font(16))
    if story.chart.lines:
        data = CategoryChartData()
        data.categories = [_plain(label) for label in story.chart.labels]
        for name, values in story.chart.lines:
            data.add_series(_plain(name), values)
        place = (_MARGIN, Inches(2.6), Inches(7.4), Inches(4.4))
        chart = slide.shapes.add_chart(XL_CHART_TYPE.LINE_MARKERS, *place, data).chart
        _styled(chart, story.chart.title)
    words = [(f"{w.word}: {w.role}, {w.documents}", w.page) for w in story.words]
    _write(slide, words, _Box(2.6, 2.4, left=8.4, width=4.3), _Font(13))
    documents = [
        (f"{formats.short_address(url, 60)} ({source}, {day})", url)
        for url, source, day in story.documents
    ]
    if documents:
        title = (handout.documents_title, "")
        _write(slide, [title, *documents], _Box(5.1, 2.0, left=8.4, width=4.3), _Font(12))


def _ranking(deck: Any, ranking: HandoutRanking) -> None:
    slide = _titled(deck, ranking.title)
    rows = ranking.rows[:_ROWS]
    n = len(rows)
    place = (_MARGIN, Inches(1.4), _WIDE - 2 * _MARGIN, Inches(0.45 * n))
    table = slide.shapes.add_table(n, 3, *place).table
    table.first_row = False
    for column, share in enumerate((0.17, 0.55, 0.28)):
        table.columns[column].width = Emu(int((_WIDE - 2 * _MARGIN) * share))
    for at, (word, sentence, sure, page) in enumerate(rows):
        for column, line in enumerate(((word, page), (sentence, ""), (sure, ""))):
            _fill(table.cell(at, column).text_frame, [line], _Font(12, bold=column == 0))


def _sources(deck: Any, handout: Handout) -> None:
    slide = _titled(deck, handout.sources_title)
    shown = [(name, n) for name, n in handout.sources if n][:_SOURCES]
    if shown:
        data = CategoryChartData()
        data.categories = [_plain(formats.short_word(name, 30)) for name, _ in reversed(shown)]
        data.add_series(handout.documents_title, [n for _, n in reversed(shown)])
        place = (_MARGIN, Inches(1.4), Inches(7.4), Inches(5.4))
        chart = slide.shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, *place, data).chart
        chart.has_legend = False
        chart.has_title = False
        chart.plots[0].has_data_labels = True
        _coloured(chart)
    lines = [*((text, "") for text in handout.explained), (handout.page_title, handout.page)]
    method = (handout.basis, "")
    _write(slide, [*lines, method], _Box(1.5, 5, left=8.4, width=4.3), _Font(13))


def _titled(deck: Any, title: str) -> Any:
    slide = deck.slides.add_slide(deck.slide_layouts[_BLANK])
    _write(slide, [(title, "")], _Box(0.5, 0.8), _Font(28, bold=True, colour=_ACCENT))
    return slide


def _styled(chart: Any, title: str) -> None:
    chart.has_title = True
    chart.chart_title.text_frame.text = _plain(title)
    chart.chart_title.text_frame.paragraphs[0].runs[0].font.size = Pt(12)
    chart.has_legend = True
    chart.legend.position = XL_LEGEND_POSITION.BOTTOM
    chart.legend.include_in_layout = False
    chart.font.size = Pt(12)
    _coloured(chart)


def _coloured(chart: Any) -> None:
    for at, series in enumerate(chart.plots[0].series):
        colour = RGBColor.from_string(LINE_COLOURS[at % len(LINE_COLOURS)][1:].upper())
        if chart.chart_type == XL_CHART_TYPE.LINE_MARKERS:
            series.smooth = False
            series.format.line.color.rgb = colour
            series.marker.format.fill.solid()
            series.marker.format.fill.fore_color.rgb = colour
        else:
            series.format.fill.solid()
            series.format.fill.fore_color.rgb = colour


def _write(slide: Any, lines: Sequence[_LINE], box: _Box, font: _Font) -> None:
    place = (Inches(inches) for inches in (box.left, box.top, box.width, box.height))
    frame = slide.shapes.add_textbox(*place).text_frame
    frame.word_wrap = True
    _fill(frame, lines, font)


def _fill(frame: Any, lines: Sequence[_LINE], font: _Font) -> None:
    for at, (text, address) in enumerate(lines):
        paragraph = frame.paragraphs[0] if at == 0 else frame.add_paragraph()
        run = paragraph.add_run()
        run.text = _plain(text)
        run.font.size, run.font.bold = Pt(font.size), font.bold
        if any("가" <= c <= "힣" for c in text):
            # The theme's font for Hangul, and lines that break between words.
            run.font.language_id = MSO_LANGUAGE_ID.KOREAN
            paragraph._p.get_or_add_pPr().set("eaLnBrk", "0")  # noqa: SLF001 - it has no other
        run.font.color.rgb = font.colour
        if address:
            run.hyperlink.address = _plain(address)


def _plain(text: str) -> str:
    """What XML can hold, on one line."""
    return "".join(c if c.isprintable() else " " for c in text)
