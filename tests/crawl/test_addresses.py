import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.crawl.addresses import canonical, host_of, origin_of, same_site


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("HTTPS://Example.ORG:443/a?utm_source=x&id=5&fbclid=y#top", "https://example.org/a?id=5"),
        ("http://example.org", "http://example.org/"),
        ("http://example.org/a#comment-9", "http://example.org/a#comment-9"),
        ("http://example.org/a#item-9", "http://example.org/a#item-9"),
        ("http://127.0.0.1:8080/news/a/1?n_media=5", "http://127.0.0.1:8080/news/a/1"),
        ("replayed://old/1", "replayed://old/1"),
    ],
)
def test_one_page_has_one_key(url: str, expected: str) -> None:
    assert canonical(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/여론/기사?쿼리=값&id=3",
        "http://example.org/a?b=2&a=1",
        "http://[2001:db8::1]:8080/x",
        "http://example.org/a/../b/",
        "http://example.org/a?q=%EC%97%AC%EB%A1%A0",
    ],
)
def test_a_key_is_its_own_key_and_names_the_same_page(url: str) -> None:
    key = canonical(url)
    assert canonical(key) == key
    assert host_of(key) == host_of(url)


@given(st.text(max_size=60))
def test_nothing_makes_it_fail(text: str) -> None:
    for url in (text, f"http://{text}", f"http://example.org/{text}"):
        assert isinstance(canonical(url), str)
        assert isinstance(host_of(url), str)


def test_hosts_and_origins() -> None:
    assert host_of("https://example.org/a") == "example.org:443"
    assert origin_of("http://Example.org/a") == "http://example.org:80"


def test_only_one_site_declares_its_own_pages_equal() -> None:
    assert same_site("https://m.example.org/a", "https://www.example.org/b")
    assert not same_site("https://evil.example/a", "https://example.org/b")
    assert not same_site("nonsense", "nonsense")
