"""Bodies that are wrong in one way each; nothing here depends on the corpus or on time."""

from __future__ import annotations

import gzip

from starlette.responses import HTMLResponse, Response

from yeoron_simweb.markup import MarkupPage, paragraphs

_HTML = "text/html; charset=utf-8"

# Fixed text: a faulty page must not depend on the corpus.
TEXT = (
    "시민들은 새로 문을 연 도서관을 찾아 책을 읽고 이야기를 나누었다.\n"
    "도서관은 저녁 늦게까지 열려 있고 주말에는 아이들을 위한 공연도 열린다.\n"
    "담당자는 더 많은 주민이 편하게 이용할 수 있도록 자리를 늘리겠다고 밝혔다."
)

MANY = (
    "/fault/many/1",
    "/fault/many/1?utm_source=feed&utm_medium=rss",
    "/fault/many/1?fbclid=abc123",
    "/fault/many/1/amp",
    "/fault/many/1/",
    "/fault/many/1#comments",
    "/fault//many/1",
    "/fault/many/1?ref=front&page=1",
)
"""Addresses of one and the same article; the first is the canonical one."""


def sound_article(title: str, url: str) -> str:
    """HTML of a sound article whose canonical address is `url`."""
    head = (
        f'<link rel="canonical" href="{url}">\n'
        f'<meta property="og:title" content="{title}">\n'
        '<meta property="article:published_time" content="2021-03-04T05:06:07+00:00">\n'
    )
    body = (
        f"<main><article><h1>{title}</h1>\n"
        f'<div class="article-body">{paragraphs(TEXT)}</div></article></main>\n'
    )
    return MarkupPage(title, body, head).html()


def links_page(title: str, paths: list[str]) -> Response:
    """A list of links."""
    shown = [path.replace("&", "&amp;") for path in paths]
    rows = "\n".join(f'<li class="headline"><a href="{p}">{p}</a></li>' for p in shown)
    body = f'<main><h1>{title}</h1>\n<ul class="headlines">\n{rows}\n</ul></main>\n'
    return HTMLResponse(MarkupPage(title, body).html())


def broken_gzip(url: str) -> Response:
    """Content-Encoding: gzip with a body that does not unpack."""
    packed = bytearray(gzip.compress(sound_article("고장 난 압축", url).encode()))
    middle = len(packed) // 2
    packed[12:middle] = bytes(middle - 12)
    return _packed(bytes(packed))


def cut_off(url: str) -> Response:
    """Content-Encoding: gzip with a body that ends early."""
    packed = gzip.compress(sound_article("끊긴 기사", url).encode())
    return _packed(packed[: len(packed) // 2])


def broken_html() -> Response:
    """Unclosed and crossed elements, stray bytes, NUL, a head that never ends."""
    lines = "<p>".join(TEXT.split("\n"))
    html = (
        "<html><head><title>깨진 쪽<meta charset=utf-8><body><div><table><tr><p><b><i>"
        f"<article class=><h1>깨진 쪽</h2><p>{lines}</b></i></td></article></div></body>"
        "<script>if (1 < 2) { document.write('</p') <!-- \x00"
    )
    return Response(html.encode() + b"\xff\xfe\xc0<p", media_type="text/html")


def wrong_charset(url: str) -> Response:
    """EUC-KR bytes that header and meta element call UTF-8."""
    body = sound_article("잘못 적힌 문자 집합", url).encode("euc-kr", "xmlcharrefreplace")
    return Response(body, headers={"Content-Type": _HTML})


def binary() -> Response:
    """Bytes that are no text, called HTML."""
    return Response(bytes(range(256)) * 64, headers={"Content-Type": _HTML})


def empty() -> Response:
    """200 without a body."""
    return Response(b"", headers={"Content-Type": _HTML})


def broken_feed(base: str) -> Response:
    """RSS that ends in the middle of its second entry."""
    xml = (
        '<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel><title>깨진 소식'
        f"</title><item><title>첫 소식</title><link>{base}{MANY[0]}</link></item>"
        "<item><title>둘째 & 소식</title><link>"
    )
    return Response(xml.encode(), media_type="application/rss+xml; charset=utf-8")


def redirect(location: str) -> Response:
    """302 to this address, whatever it is."""
    return Response("", 302, headers={"Location": location})


def refused(status: int, retry_after: float) -> Response:
    """A refusal with Retry-After."""
    return Response("", status, headers={"Retry-After": f"{retry_after:.0f}"})


def _packed(body: bytes) -> Response:
    return Response(body, headers={"Content-Encoding": "gzip", "Content-Type": _HTML})
