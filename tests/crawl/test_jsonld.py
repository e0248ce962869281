import html
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml.html import document_fromstring

from embedding.crawl.jsonld import blocks, described, objects

VALUES = st.recursive(
    st.text(st.characters(exclude_characters="<", exclude_categories=["Cs", "Cc"]), max_size=20),
    lambda inner: (
        st.dictionaries(st.text("abcXYZ@", min_size=1, max_size=6), inner, max_size=3)
        | st.lists(inner, max_size=3)
    ),
    max_leaves=8,
)
WRAPPINGS = {
    "plain": "{}",
    "comment": "<!--\n{}\n-->",
    "cdata": "//<![CDATA[\n{}\n//]]>",
    "cdata in a comment": "/*<![CDATA[*/{}/*]]>*/",
    "semicolon": "{};",
    "mark": "\ufeff{}",
}


def page(script: str, kind: str = "application/ld+json") -> object:
    return document_fromstring(
        f'<html><head><script type="{kind}">{script}</script></head><body>글</body></html>'
    )


@given(
    st.dictionaries(st.text("ab", min_size=1), VALUES, max_size=3),
    st.sampled_from(sorted(WRAPPINGS)),
)
def test_what_sites_put_around_it_does_not_matter(value: dict[str, object], wrapping: str) -> None:
    text = WRAPPINGS[wrapping].format(json.dumps(value, ensure_ascii=False))
    assert blocks(page(text)) == [value]


@pytest.mark.parametrize(
    "kind", ["application/ld+json; charset=utf-8", "Application/LD+JSON", " application/ld+json"]
)
def test_the_type_may_say_more(kind: str) -> None:
    assert blocks(page('{"a": 1}', kind)) == [{"a": 1}]


def test_line_ends_in_strings_entities_and_a_comma_too_many() -> None:
    assert blocks(page('{"a": "one\n\ttwo"}')) == [{"a": "one\n\ttwo"}]
    assert blocks(page(html.escape('{"a": "b"}'))) == [{"a": "b"}]
    assert blocks(page('{"a": [1, 2,], "b": 3,}')) == [{"a": [1, 2], "b": 3}]


def test_a_broken_block_does_not_hide_the_others() -> None:
    tree = document_fromstring(
        '<script type="application/ld+json">{"a": </script>'
        '<script type="application/ld+json">{"b": 1}</script><p>글</p>'
    )
    assert blocks(tree) == [{"b": 1}]


def test_a_page_describes_itself_by_graph_and_entity_and_not_by_lists() -> None:
    value = {
        "@graph": [
            {"name": "page", "mainEntity": {"name": "article"}},
            {"@type": "ItemList", "itemListElement": [{"name": "other"}]},
        ]
    }
    assert [one["name"] for one in described(value) if "name" in one] == ["page", "article"]
    assert {one.get("name") for one in objects(value)} == {None, "page", "article", "other"}


def test_a_deep_block_ends() -> None:
    assert blocks(page("[" * 100_000)) == []
    assert list(objects(json.loads('{"a":' * 50 + "1" + "}" * 50)))
