"""The Atom feed of findings."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlsplit

import feedparser
import pytest
from lxml import etree

ATOM = "{http://www.w3.org/2005/Atom}"


@pytest.fixture(scope="module")
def feed(client):
    answer = client.get("/feed.atom", params={"lang": "en"})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("application/atom+xml")
    return answer


def test_it_is_atom_with_all_that_the_standard_asks_for(feed):
    root = etree.fromstring(feed.content)
    assert root.tag == f"{ATOM}feed"
    for name in ("id", "title", "updated", "author"):
        assert len(root.findall(f"{ATOM}{name}")) == 1
    assert {link.get("rel") for link in root.findall(f"{ATOM}link")} == {"self", "alternate"}
    entries = root.findall(f"{ATOM}entry")
    assert entries
    for one in (root, *entries):
        for name in ("id", "title", "updated"):
            assert len(one.findall(f"{ATOM}{name}")) == 1
        assert datetime.fromisoformat(one.findtext(f"{ATOM}updated")).tzinfo is not None
        assert one.findtext(f"{ATOM}id").startswith("urn:uuid:")
    ids = [one.findtext(f"{ATOM}id") for one in entries]
    assert len(set(ids)) == len(ids)


def test_a_reader_finds_stories_with_addresses_and_nothing_hostile(feed, client):
    found = feedparser.parse(feed.content)
    assert not found.bozo
    assert found.feed.language == "en"
    one = next(e for e in found.entries if "news.example" in e.content[0].value)
    assert "At most 1 in" in one.content[0].value
    assert "https://news.example/0" in one.content[0].value
    assert client.get(urlsplit(one.link).path).status_code == 200
    raw = etree.fromstring(feed.content)
    for content in raw.iter(f"{ATOM}content"):
        assert "<script" not in content.text
        assert "javascript:" not in content.text


def test_ids_stay_and_what_a_reader_has_is_not_sent_again(feed, client):
    again = client.get("/feed.atom", params={"lang": "ko"})
    ids = [[e.id for e in feedparser.parse(one.content).entries] for one in (feed, again)]
    assert ids[0] == ids[1]
    headers = {"if-none-match": feed.headers["etag"]}
    same = client.get("/feed.atom", params={"lang": "en"}, headers=headers)
    assert (same.status_code, same.content) == (304, b"")


def test_a_page_says_where_the_feed_is(client):
    assert 'type="application/atom+xml"' in client.get("/").text


def test_a_token_is_in_no_link_of_the_feed(client):
    answer = client.get("/feed.atom", params={"lang": "en"})
    assert "token" not in answer.text
