from __future__ import annotations

from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from yeoron_simweb.charset import encode_euckr


def test_hangul_is_encoded_and_the_rest_becomes_references() -> None:
    assert encode_euckr("한글 <p>") == "한글 <p>".encode("euc-kr")
    assert encode_euckr("뷁") == f"&#{ord('뷁')};".encode()
    assert encode_euckr("가😀나") == "가".encode("euc-kr") + b"&#128512;" + "나".encode("euc-kr")


# HTML has no reference for noncharacters (U+FDD0 and the like), which are unassigned (Cn).
@given(st.text(st.characters(blacklist_categories=("Cc", "Cn", "Cs"), blacklist_characters="&")))
def test_every_reader_gets_the_text_back(text: str) -> None:
    body = encode_euckr(text)
    # HTML's own table of references 128–159 (Windows-1252) starts above these, so it is exact.
    assert unescape(body.decode("euc_kr")) == text
    assert unescape(body.decode("cp949")) == text
