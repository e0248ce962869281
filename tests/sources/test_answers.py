"""Items found in JSON by name or by shape; no Chromium."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.kernel.errors import ConfigError
from embedding.sources.answers import PageAnswers, find_shape
from embedding.sources.config import SourceConfig, load_sources

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=40,
)
PORTALS: list[tuple[Any, dict[str, str]]] = [
    (
        {
            "result": {
                "commentList": [
                    {
                        "commentNo": 7,
                        "contents": "정말 그런가요?",
                        "regTime": "2024-01-01T00:00:00+0900",
                        "userName": "가나",
                        "profileUrl": "/u/1",
                    }
                ],
                "count": {"comment": 1},
            },
            "lang": "ko",
        },
        {"id": "commentNo", "text": "contents", "time": "regTime", "author": "userName"},
    ),
    (
        [
            {
                "id": 1,
                "content": "글이 좋아요 그래서",
                "createdAt": "2024-01-01T00:00:00Z",
                "parentId": 3,
                "user": {"displayName": "다라", "icon": "https://e.org/i.png"},
            }
        ],
        {"id": "id", "text": "content", "time": "createdAt", "author": "user.displayName"},
    ),
    (
        {
            "data": {
                "posts": [
                    {
                        "post_id": "a1",
                        "subject": "제목",
                        "memo": "본문은 여기에 있다",
                        "reg_date": 1700000000,
                        "writer": "마바",
                        "url": "/p/a1",
                    }
                ],
                "ads": [{"id": "x", "image": "https://ads.example/1.png"}],
            }
        },
        {
            "id": "post_id",
            "text": "memo",
            "time": "reg_date",
            "author": "writer",
            "title": "subject",
            "link": "url",
        },
    ),
]
"""Answers as large Korean portals, blogs and boards give them, and where their fields are."""


@pytest.mark.parametrize(("answer", "fields"), PORTALS)
def test_the_shapes_of_common_boards_are_told(answer: Any, fields: dict[str, str]) -> None:
    shape = find_shape(answer)
    assert shape is not None
    assert {name: shape.fields.get(name) for name in fields} == fields


def test_menus_and_settings_are_no_posts() -> None:
    assert find_shape({"menu": [{"id": 1, "url": "/a"}, {"id": 2, "url": "/b"}]}) is None
    assert find_shape({"flags": [{"name": "a", "on": True}]}) is None
    assert find_shape([]) is None


@given(ANY_JSON)
def test_any_answer_is_read_without_a_failure(answer: Any) -> None:
    find_shape(answer)
    find_shape(answer, wants_text=False)
    for answers in ("auto", "example"):
        source = SourceConfig(name="b", kind="rendered", url="http://example.org", answers=answers)
        taken = PageAnswers(source)
        taken.take("http://example.org/a", json.dumps(answer).encode())
        taken.items()


@given(st.binary(max_size=200))
def test_what_is_no_json_is_passed_over(body: bytes) -> None:
    source = SourceConfig(name="b", kind="rendered", url="http://example.org", answers="auto")
    PageAnswers(source).take("http://example.org/a", body)


def test_the_same_item_counts_once_and_the_largest_kind_wins() -> None:
    source = SourceConfig(name="b", kind="rendered", url="http://e.org", answers="auto")
    answers = PageAnswers(source)
    rows = [{"id": n, "text": f"긴 글입니다 번호는 {n}", "time": "2024-01-01"} for n in range(4)]
    answers.take("http://e.org/side", json.dumps([{"id": 9, "text": "짧은 글", "no": 1}]).encode())
    answers.take("http://e.org/api?p=1", json.dumps({"rows": rows[:3]}).encode())
    answers.take("http://e.org/api?p=2", json.dumps({"rows": rows[2:]}).encode())
    assert [one.id for one in answers.items()] == ["0", "1", "2", "3"]


def test_the_page_of_one_post_has_one_item() -> None:
    source = SourceConfig(
        name="b", kind="rendered", url="http://e.org", answers="/p/", items="", id="id", text="t"
    )
    answers = PageAnswers(source)
    answers.take("http://e.org/other", b'{"id": 1, "t": "no"}')
    answers.take("http://e.org/p/2", b'{"id": 2, "t": "yes"}')
    assert [(one.id, one.text) for one in answers.items()] == [("2", "yes")]


def test_answers_are_for_rendered_sources(tmp_path: Any) -> None:
    file = tmp_path / "sources.toml"
    body = '[[source]]\nname = "a"\nkind = "{}"\nurl = "http://e.org"\nanswers = "{}"\n'
    file.write_text(body.format("feed", "auto"))
    with pytest.raises(ConfigError, match="answers"):
        load_sources(file)
    file.write_text(body.format("rendered", "("))
    with pytest.raises(ConfigError, match="regular expression"):
        load_sources(file)
