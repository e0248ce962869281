import html
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml.html import document_fromstring

from embedding.crawl.jsonld import blocks

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


FAULTS = {
    "comma too many": lambda text: text.replace(',"', ',,"') + ",",
    "comma at the end": lambda text: text.replace("}", ",}").replace("]", ",]"),
    "commas missing": lambda text: text.replace('},"', '}"').replace(',"', '\n"'),
    "semicolons": lambda text: text.replace(',"', ';"').replace('},"', '};"'),
    "comments": lambda text: text.replace(',"', ', // "x": {\n"').replace(":", ": /* x: */"),
    "cut off": lambda text: text[:-1] + "\n",
    "names without quotes": lambda text: text.replace('"b0"', "b0").replace('"@type"', "@type"),
    "single quotes": lambda text: text.replace('"', "'"),
    "empty value": lambda text: text.replace('"b0"', '"x": ,"b0"'),
    "template": lambda text: text.replace('"b0"', '"x": {{ image }},"b0"'),
}
WORDS = st.text(st.sampled_from("가나다 abc"), min_size=1, max_size=9)


@given(
    st.lists(st.one_of(WORDS, st.integers(), st.booleans(), st.lists(WORDS)), max_size=4),
    st.sampled_from(sorted(FAULTS)),
)
def test_what_can_be_made_out_of_a_block_with_a_fault_is_read(
    values: list[object], fault: str
) -> None:
    value = {
        "@type": "Article",
        **{f"b{at}": one for at, one in enumerate(values)},
        "end": {"e": 1},
    }
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    (found,) = blocks(page(FAULTS[fault](text)))
    found.pop("x", None)
    if fault == "commas missing":
        # Texts of a list run together; what else there is does not.
        lists = {name for name, one in value.items() if isinstance(one, list)}
        found = {name: value[name] if name in lists else one for name, one in found.items()}
    assert found == value


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (r'{"a": "it\'s", "b": "C:\dir\x", "c": "\u12"}', {"a": "it's", "b": "C:dirx", "c": "u12"}),
        (r'{"a": "\ud83d\ude00 \"b\"", }', {"a": '😀 "b"'}),
        (
            '{"a": "그는 "네", "아니오"라 했다", "b": 1}',
            {"a": '그는 "네", "아니오"라 했다', "b": 1},
        ),
        ('{"a": "끝"", "b": 1}', {"a": '끝"', "b": 1}),
        ('{"a": 2021-03-01 16:05, "b": 1}', {"a": "2021-03-01 16:05", "b": 1}),
        ('{"a": "http://h.example/x", }', {"a": "http://h.example/x"}),
    ],
)
def test_wrong_escapes_and_quotes_in_strings(script: str, expected: dict[str, object]) -> None:
    assert blocks(page(script)) == [expected]


def test_several_values_in_one_block() -> None:
    assert blocks(page('{"a": 1}\n{"b": 2};\n[{"c": 3}, ]')) == [{"a": 1}, {"b": 2}, [{"c": 3}]]


@pytest.mark.parametrize("begin", ['"a', "/*", "';", '"', ";", '",', "[", "a", '",  "', "\\"])
def test_a_hostile_block_takes_time_linear_in_it(begin: str) -> None:
    before = time.process_time()
    blocks(page("{" + begin * (150_000 // len(begin))))
    assert time.process_time() - before < 5


def test_a_broken_block_does_not_hide_the_others() -> None:
    tree = document_fromstring(
        '<script type="application/ld+json">{"a": </script>'
        '<script type="application/ld+json">{"b": 1}</script><p>글</p>'
    )
    assert blocks(tree) == [{"b": 1}]


@pytest.mark.parametrize(
    "script",
    ["{“a”: “b”, “c”: “d”}", '{\\"a\\": \\"b\\", \\"c\\": \\"d\\"}', '{"a": "b",<br />\n"c": "d"}'],
)
def test_quotes_of_word_processors_escaped_ones_and_line_ends_of_editors(script: str) -> None:
    assert blocks(page(script)) == [{"a": "b", "c": "d"}]


def test_a_deep_block_ends() -> None:
    assert blocks(page("[" * 100_000)) == []
