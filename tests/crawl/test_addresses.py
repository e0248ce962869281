import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.crawl.addresses import canonical, host_of, origin_of, same_page, same_site
from embedding.crawl.runner import _names


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("HTTPS://Example.ORG:443/a?utm_source=x&id=5&fbclid=y#top", "https://example.org/a?id=5"),
        ("http://example.org", "http://example.org/"),
        ("http://example.org/a#comment-9", "http://example.org/a#comment-9"),
        ("http://example.org/a#item-9", "http://example.org/a#item-9"),
        ("http://127.0.0.1:8080/news/a/1?n_media=5", "http://127.0.0.1:8080/news/a/1"),
        ("replayed://old/1", "replayed://old/1"),
        ("http://h.kr/a?PHPSESSID=0a1b2c3d4e5f60718&no=7", "http://h.kr/a?no=7"),
        ("http://h.kr/a;jsessionid=0A1B2C3D4E5F?no=7", "http://h.kr/a?no=7"),
        ("http://h.kr/%7ea/%ea%b0%80?x=%b0%A1", "http://h.kr/~a/%EA%B0%80?x=%B0%A1"),
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


NAMES = st.text("abcdeinorsxyz", min_size=1, max_size=6)
VALUES = st.text("abc019-._~", max_size=8) | st.sampled_from(["%B0%A1%B3%AA", "", "가"])
PAIRS = st.lists(st.tuples(NAMES, VALUES, st.booleans()), min_size=1, max_size=4)


def address(pairs: list[tuple[str, str, bool]]) -> str:
    return "http://h.kr/read?" + "&".join(f"{n}={v}" if both else n for n, v, both in pairs)


@given(PAIRS, PAIRS)
def test_addresses_that_a_server_may_tell_apart_have_two_keys(
    left: list[tuple[str, str, bool]], right: list[tuple[str, str, bool]]
) -> None:
    equal = address(left) == address(right)
    assert (canonical(address(left)) == canonical(address(right))) is equal


@pytest.mark.parametrize("name", ["cid", "ref", "source", "sid", "id", "session", "s_id", "rssid"])
def test_a_name_that_may_name_the_page_stays(name: str) -> None:
    assert canonical(f"http://h.kr/a?{name}=31") == f"http://h.kr/a?{name}=31"


def test_one_declared_address_of_a_template_makes_no_pages_equal() -> None:
    pages = [f"https://news.example/view?no={n}" for n in (1, 2)]
    for declared in ("https://news.example/", "https://news.example/view", pages[0]):
        names = [set(_names(page, page, declared)) | {page} for page in pages]
        assert not names[0] & names[1]


def test_editions_of_a_page_are_one() -> None:
    desk = "https://www.press.example/a/1?x=2"
    for other in ("https://m.press.example/a/1?x=2", "http://press.example/a/1/amp?x=2"):
        assert same_page(other, desk)
        assert _names(other, other, desk) == {desk}
    assert not same_page("https://m.press.example/a/2?x=2", desk)
    assert not same_page("https://other.example/a/1?x=2", desk)
