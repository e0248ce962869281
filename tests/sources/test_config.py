from pathlib import Path

import pytest

from embedding.kernel.errors import ConfigError
from embedding.sources.base import Pseudonyms
from embedding.sources.config import SourceConfig, load_sources
from embedding.sources.kinds import SOURCES, make_adapter

FEED = '[[source]]\nname = "뉴스"\nkind = "feed"\nurl = "https://example.org/rss"\n'


def write(folder: Path, text: str) -> Path:
    file = folder / "sources.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_source_is_read_with_its_defaults(tmp_path: Path) -> None:
    (source,) = load_sources(write(tmp_path, FEED))
    assert (source.name, source.kind, source.language, source.timezone) == (
        "뉴스",
        "feed",
        "ko",
        "Asia/Seoul",
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (FEED + "evry = 3\n", ["sources.toml", "뉴스", "evry", "every"]),
        (FEED + FEED, ["sources.toml", "뉴스", "twice"]),
        (FEED.replace("feed", "rss"), ["뉴스", "'rss'", "sitemap", "comments"]),
        (FEED.replace("https://example.org/rss", "example.org"), ["뉴스", "url", "http"]),
        (FEED.replace("https:", "file:"), ["뉴스", "url", "http", "file:"]),
        (FEED.replace(".org", ".org:99999"), ["뉴스", "url", "ort", "65535"]),
        (FEED.replace(".org", ".org:0"), ["뉴스", "url", "port 0"]),
        (FEED.replace("example.org", "exam ple.org"), ["뉴스", "url", "spaces"]),
        (FEED.replace("example.org", "hong:pw@example.org"), ["뉴스", "url", "never sent"]),
        (FEED + 'proxy = "proxy.example:3128"\n', ["뉴스", "proxy", "http"]),
        (FEED + 'proxy = "socks5://proxy.example"\n', ["뉴스", "proxy", "http"]),
        (FEED + 'cookies = { a = "b\\r\\nX: y" }\n', ["뉴스", "cookies.a"]),
        (FEED + 'language = "Korean"\n', ["뉴스", "language", "two letters", "empty"]),
        (FEED + "every = inf\n", ["뉴스", "every", "finite"]),
        (FEED + "rate = nan\n", ["뉴스", "rate", "finite"]),
        (FEED.replace("feed", "page") + 'items = "li["\n', ["뉴스", "items", "CSS", "li["]),
        (FEED + 'links = "("\n', ["뉴스", "links", "regular expression"]),
        (FEED + 'timezone = "Korea/Busan"\n', ["뉴스", "timezone", "Asia/Seoul"]),
        (FEED + "every = 0\n", ["뉴스", "every", "a number above 0 is accepted"]),
        (FEED + 'text = ".body"\n', ["뉴스", "text", "a feed source accepts"]),
        ('[[source]]\nkind = "feed"\n', ["number 1", "name"]),
        ('[[source]]\nname = "a"\nkind = "replayed"\n', ["'a'", "path"]),
        ("[sources]\n", ["sources", "[[source]]"]),
        ("", ["no [[source]]"]),
        ("[[source]\n", ["not valid TOML"]),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(tmp_path: Path, text: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load_sources(write(tmp_path, text))
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert "\n" not in message
    assert "Value error" not in message


def test_mixed_languages_can_be_written(tmp_path: Path) -> None:
    assert load_sources(write(tmp_path, FEED + 'language = ""\n'))[0].language is None


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path: Path) -> None:
    assert len(load_sources(write(tmp_path, "\ufeff" + FEED))) == 1


def test_a_file_that_is_not_utf_8_says_so(tmp_path: Path) -> None:
    file = tmp_path / "sources.toml"
    file.write_bytes(FEED.encode("cp949"))
    with pytest.raises(ConfigError, match=r"sources\.toml: not UTF-8"):
        load_sources(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.toml"):
        load_sources(tmp_path / "nowhere.toml")


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    text = '[[source]]\nname = "old"\nkind = "replayed"\npath = "old.jsonl"\n'
    assert load_sources(write(tmp_path, text))[0].path == tmp_path / "old.jsonl"


def test_the_example_is_valid_and_polite() -> None:
    example = Path(__file__).parents[2] / "infra" / "sources.example.toml"
    sources = load_sources(example)
    assert len(sources) >= 5
    assert all(source.every >= 60 for source in sources if source.kind != "replayed")
    assert all((source.rate or 1.0) <= 1.0 for source in sources)
    for source in sources:
        make_adapter(source, Pseudonyms(b"k"))


@pytest.mark.parametrize("kind", SOURCES)
def test_a_kind_understands_settings_that_there_are(kind: str) -> None:
    traits = SOURCES.traits(kind)
    assert set(traits.settings) <= set(SourceConfig.model_fields)
    assert set(traits.defaults) <= set(traits.settings)
