from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.discovery.proposals import reject, rejected
from embedding.kernel.config import read_toml
from embedding.kernel.errors import ConfigError
from embedding.sources.config import SourceConfig, add_sources, load_sources, source_table

FIRST = '# mine\n[[source]]\nname = "a"  # the first\nkind = "feed"\nurl = "https://a.kr/rss"\n'


def source(name: str, **more: object) -> SourceConfig:
    return SourceConfig(**{"name": name, "kind": "feed", "url": f"https://{name}.kr/rss", **more})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "sources.toml"
    found.write_text(FIRST, encoding="utf-8")
    return found


def test_tables_are_appended_and_the_rest_is_kept(path: Path) -> None:
    page = source("b", kind="page", links=r"/view/[^/?#]+(?:[?#]|$)", next="a[rel=next]", pages=3)
    assert add_sources(path, [page, source("c")]) == ["b", "c"]
    assert path.read_text(encoding="utf-8").startswith(FIRST)
    assert load_sources(path)[1:] == (page, source("c"))
    assert [each.name for each in path.parent.iterdir()] == ["sources.toml"]


def test_what_is_there_is_not_added_again(path: Path) -> None:
    same_url = source("other", url="https://a.kr/rss")
    assert add_sources(path, [source("a"), same_url]) == []
    assert path.read_text(encoding="utf-8") == FIRST


def test_a_result_that_is_no_valid_file_changes_nothing(path: Path) -> None:
    wrong = SourceConfig.model_construct(name="b", kind="feed", url="ftp://x")
    with pytest.raises(ConfigError, match="url"):
        add_sources(path, [wrong])
    assert path.read_text(encoding="utf-8") == FIRST
    assert [each.name for each in path.parent.iterdir()] == ["sources.toml"]


def test_two_at_once_lose_nothing(path: Path) -> None:
    threads = [
        threading.Thread(target=add_sources, args=(path, [source(f"s{n}")])) for n in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert {one.name for one in load_sources(path)} == {"a", *(f"s{n}" for n in range(6))}


COOKIE = st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters=";"))


@given(st.text(min_size=1), st.dictionaries(st.text(min_size=1), COOKIE, max_size=3))
def test_any_text_survives_the_way_through_toml(tmp_path_factory, text: str, cookies) -> None:
    if "\x00" in text or any(0xD800 <= ord(c) < 0xE000 for c in text):
        return
    one = source("b", title=text, cookies=cookies, kind="rendered")
    file = tmp_path_factory.mktemp("toml") / "s.toml"
    file.write_text(source_table(one), encoding="utf-8")
    (table,) = read_toml(file)["source"]
    assert table["title"] == text
    assert table.get("cookies", {}) == cookies


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"sources\.toml is expected"):
        add_sources(tmp_path / "none" / "s.toml", [source("b")])


def test_rejections_are_remembered_with_their_first_time(tmp_path: Path) -> None:
    path = tmp_path / "home" / "rejected.json"
    assert rejected(path) == {}
    reject(path, ["https://a.kr/rss"])
    first = rejected(path)
    reject(path, ["https://a.kr/rss", "https://b.kr/rss"])
    assert rejected(path)["https://a.kr/rss"] == first["https://a.kr/rss"]
    assert set(rejected(path)) == {"https://a.kr/rss", "https://b.kr/rss"}
    path.write_text("nonsense", encoding="utf-8")
    with pytest.raises(ConfigError, match="JSON object"):
        rejected(path)
