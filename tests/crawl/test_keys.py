"""Keys of a source's own items stay its own."""

from __future__ import annotations

import pytest

from embedding.crawl.addresses import item_key, storable

SOURCE = "https://social.example/api/v1/timelines/public"
ARTICLE = "https://press.example.kr/politics/1"


@pytest.mark.parametrize(
    "key",
    [
        "https://social.example/posts/1",
        "https://www.social.example/posts/1",
        "https://social.example/api/v1/timelines/public#item-7",
        "kafka://posts/3/77",
        "replayed://posts/3",
    ],
)
def test_an_item_of_the_sources_own_site_keeps_its_address(key: str) -> None:
    assert item_key(key, SOURCE) == key


def test_an_item_cannot_take_the_address_of_another_sites_page() -> None:
    key = item_key(ARTICLE, SOURCE)
    assert key.startswith(f"{SOURCE}#item-")
    assert storable(key)
    assert key == item_key(f"{ARTICLE}?utm_source=x", SOURCE), "one item has one key"
    assert key != item_key(ARTICLE, "https://other.example/api/v1/timelines/public")


def test_a_comment_on_another_sites_page_keeps_the_page_and_no_others_key() -> None:
    key = item_key(f"{ARTICLE}#comment-5", SOURCE)
    assert key.startswith(f"{ARTICLE}#comment-")
    assert key != f"{ARTICLE}#comment-5"
    assert key != item_key(f"{ARTICLE}#comment-5", "https://other.example/comments")


def test_an_address_that_is_no_text_is_an_item_of_the_source() -> None:
    assert item_key("https://press.example/\ud800", SOURCE).startswith(f"{SOURCE}#item-")
