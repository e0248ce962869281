from encodings.aliases import aliases

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from embedding.crawl.extract import read_page
from embedding.crawl.fetcher import Response
from embedding.kernel.errors import FetchError

TEXT = "여론은 글에서 움직인다. 똠방각하 펲시콜라"  # the last two words are outside EUC-KR


def decode(body: bytes, headers: dict[str, str]) -> str:
    return Response("http://a/b", 200, headers, body).text()


@pytest.mark.parametrize("codec", ["utf-8", "cp949", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("declared", ["", "utf-8", "euc-kr", "iso-8859-1", "ks_c_5601-1987"])
def test_korean_is_read_whatever_is_declared(codec: str, declared: str) -> None:
    body = f"<html><meta charset='{declared}'><p>{TEXT}</p>".encode(codec)
    assert TEXT in decode(body, {"content-type": f"text/html; charset={declared}"})
    assert TEXT in decode(body, {})


def test_other_declared_encodings_are_obeyed() -> None:
    body = "日本語の文章です。これは記事。".encode("shift_jis")
    assert decode(body, {"content-type": "text/html; charset=Shift_JIS"}).startswith("日本語")


def test_seven_bit_korean() -> None:
    body = "여론".encode("iso2022_kr")
    assert "여론" in decode(body, {"content-type": "text/html; charset=iso-2022-kr"})


def test_a_few_broken_bytes_do_not_lose_a_page() -> None:
    body = (TEXT * 20).encode() + b"\xff\xfe\xff"
    assert decode(body, {"content-type": "text/html; charset=utf-8"}).startswith(TEXT)


def test_what_is_refused_is_named_by_its_address() -> None:
    noise = bytes(range(128, 256)) * 50 + b"\x80\xff"
    with pytest.raises(FetchError, match=r"^http://a/b: "):
        Response("http://a/b", 200, {}, noise).text()
    with pytest.raises(FetchError, match=r"^http://a/b: "):
        read_page(noise, "text/html", "http://a/b", "UTC")


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(FetchError) as caught:
        decode(bytes(range(128, 256)) * 50 + b"\x80\xff", {})
    assert caught.value.reason == "bad_encoding"


@given(st.binary(max_size=200), st.text(max_size=20) | st.sampled_from(sorted(aliases)))
@example(b"\x80", "UNDEFINED")
@example(b"\x80", "idna")
def test_any_bytes_are_text_or_refused(body: bytes, declared: str) -> None:
    try:
        text = decode(body, {"content-type": f"text/html; charset={declared}"})
    except FetchError:
        return
    assert isinstance(text, str)


@given(st.text(alphabet=st.characters(codec="cp949"), min_size=1, max_size=200))
def test_declared_cp949_round_trips_unless_it_is_utf8_too(text: str) -> None:
    body = text.encode("cp949")
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        assert decode(body, {"content-type": "text/html; charset=euc-kr"}) == text


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize(
    "text", ["<p>plain text</p>", f"<html><body><p>plain {TEXT}</p></body></html>"]
)
def test_wide_characters_without_a_mark(codec: str, text: str) -> None:
    body = text.encode(codec)
    assert (
        decode(body, {"content-type": f"text/html; charset={codec.replace('-le', 'le')}"}) == text
    )
    if codec.startswith("utf-16"):
        assert decode(body, {"content-type": "text/html"}) == text
        assert decode(body, {"content-type": "text/html; charset=utf-16"}) == text
