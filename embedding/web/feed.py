"""The findings as an Atom feed (RFC 4287): an entry for each story of each window."""

from __future__ import annotations

import hashlib
import html
import uuid
from typing import Annotated
from urllib.parse import urlencode
from xml.etree import ElementTree as ET

from fastapi import APIRouter, Query
from starlette.responses import Response

from embedding.ask.answers import Answers
from embedding.trends.plain import in_xml
from embedding.trends.rows import Story, TrendReport
from embedding.trends.stories import StoryDocuments
from embedding.web import formats
from embedding.web.answering import Reading
from embedding.web.findings import story_sentences
from embedding.web.links import FEED
from embedding.web.site import AskedPage

WINDOWS, ENTRIES = 60, 100
"""Windows that are looked at, newest first, and entries at most."""
_ATOM = "http://www.w3.org/2005/Atom"
_TYPE = "application/atom+xml"
_EPOCH = "1970-01-01T00:00:00+00:00"


feed_routes = APIRouter()


@feed_routes.get(
    FEED,
    summary="Findings as an Atom feed",
    responses={200: {"content": {_TYPE: {}}, "description": "Newest window first."}},
    response_class=Response,
)
def _feed(
    page: AskedPage,
    token: Annotated[
        str, Query(description="For readers that send no header; accepted here alone.")
    ] = "",
) -> Response:
    """An entry for each story of each window: sentences, how sure, addresses of documents.

    Ids stay the same when a window is cut again.
    """
    del token  # the guard has read it
    body = atom(page.answers, page.reading)
    headers = {"ETag": f'"{hashlib.sha256(body).hexdigest()[:32]}"'}
    if page.request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=_TYPE, headers=headers)


def atom(answers: Answers, to: Reading) -> bytes:
    """The feed as XML."""
    reports = list(answers.newest_reports(answers.listing().refs[-WINDOWS:]))
    # Another store is another feed, wherever its page stands.
    own = uuid.uuid5(uuid.NAMESPACE_URL, f"yeoron:{answers.config.snapshots}")
    feed = ET.Element("feed", {"xmlns": _ATOM, "xml:lang": to.t.language})
    _text(feed, "id", own.urn)
    _text(feed, "title", f"{to.t('name')}: {to.t('stories')}")
    _text(feed, "updated", reports[0].snapshot.end if reports else _EPOCH)
    _text(ET.SubElement(feed, "author"), "name", to.t("name"))
    address = f"{to.paths.page(FEED[1:])}?{urlencode({'lang': to.t.language})}"
    _link(feed, address, "self", _TYPE)
    _link(feed, to.paths.front(), "alternate", "text/html")
    entries = [(report, story) for report in reports for story in report.significant_stories()]
    for report, story in entries[:ENTRIES]:
        _entry(feed, own, story, report, answers.story_documents(story, report), to)
    body: bytes = ET.tostring(feed, encoding="utf-8", xml_declaration=True)
    return body


def _entry(
    feed: ET.Element,
    own: uuid.UUID,
    story: Story,
    report: TrendReport,
    where: StoryDocuments | None,
    to: Reading,
) -> None:
    entry = ET.SubElement(feed, "entry")
    title = " · ".join(formats.short_word(word) for word in story.title)
    _text(entry, "id", uuid.uuid5(own, f"{report.snapshot.label} {story.id}").urn)
    _text(entry, "title", f"{title} ({to.t.window(report.snapshot.label)})")
    _text(entry, "updated", report.snapshot.end)
    _link(entry, to.paths.window(report.snapshot.id), "alternate", "text/html")
    sentences = story_sentences(story, report, to.t)
    for sentence in sentences[:1]:
        _text(entry, "summary", sentence)
    parts = [f"<p>{html.escape(sentence)}</p>" for sentence in sentences]
    words = [_anchor(to.paths.word(w.word), formats.short_word(w.word)) for w in story.words]
    parts.append(f"<p>{', '.join(words)}</p>")
    documents = () if where is None else where.documents
    rows = [
        f"<li>{_anchor(page.url, formats.short_address(page.url))}, {html.escape(page.source)}, "
        f"{page.published}</li>"
        for page in documents
    ]
    parts += [f"<ul>{''.join(rows)}</ul>"] if rows else []
    _text(entry, "content", "".join(parts)).set("type", "html")


def _anchor(address: str, text: str) -> str:
    shown = html.escape(text)
    return f'<a href="{html.escape(address)}">{shown}</a>' if address else shown


def _text(parent: ET.Element, name: str, text: str) -> ET.Element:
    child = ET.SubElement(parent, name)
    child.text = in_xml(text)
    return child


def _link(parent: ET.Element, href: str, rel: str, kind: str) -> None:
    ET.SubElement(parent, "link", {"href": href, "rel": rel, "type": kind})
