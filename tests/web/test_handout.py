"""Reports to hand on: HTML, PDF, slides; from the page, the command line and in a mail."""

from __future__ import annotations

import io
import math
import re
from zipfile import ZipFile

import pytest
from lxml import html as parser
from typer.testing import CliRunner

from browsing import CHROMIUM
from embedding.cli import app
from embedding.kernel.errors import InputError, PlatformError
from embedding.web.handout.content import RateChart
from embedding.web.handout.html import picture
from embedding.web.handout.writing import HandoutMaker

PAGE = "https://page.example/yeoron/"
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium")


@pytest.fixture(scope="module")
def files(config):
    """Reports of the last window, by language and format."""
    made = {}

    def of(language: str, format: str) -> bytes:
        maker = made.setdefault(language, HandoutMaker(config, PAGE, language))
        return maker.attachment("latest", format).content

    return of


@pytest.mark.parametrize(("language", "said"), [("ko", "2020년 3월"), ("en", "March 2020")])
def test_html_is_whole_without_a_script_or_a_network(files, language, said):
    text = files(language, "html").decode()
    tree = parser.fromstring(text)
    assert tree.get("lang") == language
    assert said in tree.text_content()
    assert tree.xpath("//article//svg//path[@class='line']")
    assert not tree.xpath("//script | //link | //iframe | //object | //img | //@onmouseover")
    assert not tree.xpath("//@src")
    hrefs = tree.xpath("//a/@href")
    assert all(address.startswith(("https://", "http://")) for address in hrefs)
    assert "https://news.example/0" in hrefs
    assert any(address.startswith(PAGE + "word/") for address in hrefs)
    assert "@import" not in text
    assert "url(" not in text
    # Hostile words stay words.
    assert "<script>" not in text


def test_how_sure_stands_beside_each_story(files):
    tree = parser.fromstring(files("en", "html").decode())
    articles = tree.xpath("//article")
    assert articles
    assert all("1 in" in one.text_content() for one in articles)


@needs_chromium
@pytest.mark.browser
def test_pdf_has_the_pages(files):
    content = files("ko", "pdf")
    assert content.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) >= 1
    assert b"/JavaScript" not in content


@pytest.mark.parametrize("language", ["ko", "en"])
def test_slides_open_with_charts_and_links(files, language):
    pptx = pytest.importorskip("pptx", reason="the extra report is not installed")
    content = files(language, "pptx")
    deck = pptx.Presentation(io.BytesIO(content))
    slides = list(deck.slides)
    shapes = [shape for slide in slides for shape in slide.shapes]
    charts = [shape.chart for shape in shapes if shape.has_chart]
    assert len(charts) >= 2
    assert "마스크" in {s.name for chart in charts for s in chart.plots[0].series}
    runs = [
        run
        for shape in shapes
        if shape.has_text_frame
        for paragraph in shape.text_frame.paragraphs
        for run in paragraph.runs
    ]
    links = {run.hyperlink.address for run in runs}
    assert "https://news.example/0" in links
    texts = " ".join(run.text for run in runs)
    assert ("2020년 3월" if language == "ko" else "March 2020") in texts
    for shape in shapes:
        assert shape.left >= 0
        assert shape.left + shape.width <= deck.slide_width
        assert shape.top + height_of(shape) <= deck.slide_height
        if shape.has_text_frame:
            assert height_of(shape) <= shape.height * 1.05, shape.text_frame.text
    korean = [run for run in runs if re.search("[가-힣]", run.text)]
    assert korean
    assert {str(run.font.language_id) for run in korean} == {"KOREAN (1042)"}
    assert not any("vba" in name.lower() for name in ZipFile(io.BytesIO(content)).namelist())


_INSET = 0.2
"""Inches of a box that its text leaves free, left and right together, and about as much above."""


def height_of(shape) -> float:
    """About how high a shape is with its text, in EMU."""
    if shape.has_text_frame:
        return _high(shape.text_frame, shape.width)
    if not shape.has_table:
        return float(shape.height)
    table = shape.table
    widths = [column.width for column in table.columns]
    return sum(
        max(
            row.height,
            *(_high(cell.text_frame, w) for cell, w in zip(row.cells, widths, strict=True)),
        )
        for row in table.rows
    )


def _high(frame, width: int) -> float:
    inches = 0.1
    for paragraph in frame.paragraphs:
        size = max(run.font.size.pt for run in paragraph.runs) / 72
        text = "".join(run.text for run in paragraph.runs)
        wide = sum(0.95 if ord(c) > 0x1100 else 0.5 for c in text) * size
        inches += math.ceil(wide / (width / 914_400 - _INSET)) * size * 1.2
    return inches * 914_400


def test_a_picture_has_gaps_where_nothing_is_known():
    chart = RateChart("t", ("1", "2", "3", "4"), (("<b>", (1.0, None, 2.0, 3.0)),))
    drawn = str(picture(chart))
    path = re.search(r'class="line"[^>]* d="([^"]*)"', drawn)
    assert path is not None
    assert path[1].count("M") == 2
    assert "<b>" not in drawn
    assert not picture(RateChart("t", (), ()))
    assert picture(RateChart("t", ("1",), (("a", (0.0,)),)))


PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"


@pytest.mark.parametrize(("kind", "media"), [("html", "text/html; charset=utf-8"), ("pptx", PPTX)])
def test_the_page_hands_it_out(client, kind, media):
    front = client.get("/window/2020-03").text
    address = re.search(rf'href="([^"]*report\.{kind})"', front)
    assert address is not None
    answer = client.get(address[1], params={"lang": "en"})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == media
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert client.get(address[1].replace(f".{kind}", ".exe")).status_code == 404


@needs_chromium
@pytest.mark.browser
def test_the_page_prints(client):
    answer = client.get("/window/2020-03/report.pdf")
    assert answer.status_code == 200
    assert answer.content.startswith(b"%PDF-")


def run(*words):
    return CliRunner().invoke(app, list(words), catch_exceptions=True)


def test_the_command_writes_the_whole_file_or_none(config, tmp_path):
    out = tmp_path / "r.html"
    options = ["--snapshots", config.snapshots, "--evidence", str(config.evidence)]
    found = run("report", "2020-03", "-o", str(out), "--lang", "en", *options)
    assert found.exit_code == 0, found.output
    assert "March 2020" in out.read_text("utf-8")
    for words, part in (
        (["--format", "doc"], "accepted are html, pdf, pptx"),
        (["-o", str(tmp_path / "x.doc")], "accepted are html, pdf, pptx"),
        (["--lang", "xx"], "accepted are ko, en"),
        (["2030-01", "-o", str(tmp_path / "x.html")], "2030-01"),
    ):
        refused = run("report", *words, *options)
        assert isinstance(refused.exception, InputError), words
        assert part in str(refused.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


def test_without_a_chromium_there_is_a_sentence(config, tmp_path):
    broken = config.model_copy(update={"chromium": tmp_path / "none"})
    maker = HandoutMaker(broken, PAGE, "en")
    with pytest.raises(PlatformError, match="report as pdf"):
        maker.attachment("latest", "pdf")
