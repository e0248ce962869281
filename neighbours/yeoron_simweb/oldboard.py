"""The board as an old one: tables in EUC-KR, and in every link the id of a session.

A request gets a session of its own, so the same post has another address in every listing. The
listing says the day of a post, its page the minute. The category stands in the links as it is
written: only who sends it in EUC-KR, as browsers do, gets the post.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from html import escape
from itertools import count
from urllib.parse import parse_qs

from fastapi import APIRouter, HTTPException
from starlette.requests import Request
from starlette.responses import Response

from yeoron_simweb.charset import encode_euckr
from yeoron_simweb.habits import KST
from yeoron_simweb.library import LibraryItem
from yeoron_simweb.world import World

_PAGE = """<html><head><title>자유게시판</title>
<meta http-equiv=Content-Type content="text/html; charset=euc-kr">
<style>body,td{{font-family:굴림;font-size:9pt}}</style></head>
<body bgcolor=white topmargin=0 leftmargin=0>
<table border=0 width=800 cellspacing=0 cellpadding=0 align=center>
<tr><td><a href="/">홈</a> | <a href="zboard.php?id=free&{session}">자유게시판</a></td></tr></table>
<table border=0 width=800 cellspacing=0 cellpadding=0 align=center>
{rows}</table>
<table border=0 width=800 cellspacing=0 cellpadding=0 align=center>
<tr><td class=page>{foot}</td></tr></table>
</body></html>
"""
_CATEGORY = "잡담"
_SORTED = "page_num=20&select_arrange=headnum&desc=asc&sn=off&ss=on&sc=on&keyword="


class OldBoard:
    """Pages of the board, in the order of its numbers (from 1)."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._requests = count()

    def listing(self, page: int) -> Response:
        """Page `page` (from 1), the newest posts first."""
        session = self._session()
        posts = self._world.read("board")
        size = self._world.config.page_items
        pages = max(-(-len(posts) // size), 1)
        if not 1 <= page <= pages:
            raise HTTPException(404, "no such page")
        end = len(posts) - (page - 1) * size
        rows = "".join(
            f"<tr class=list{post.number % 2}><td>{post.number + 1}</td>"
            f'<td><a href="view.php?id=free&page={page}&{_SORTED}&no={post.number + 1}'
            f'&category={_CATEGORY}&{session}">{escape(post.title)}</a></td><td>{post.author}</td>'
            f"<td class=date>{_when(post):%Y/%m/%d}</td><td>{post.number % 97}</td></tr>\n"
            for post in reversed(posts[max(end - size, 0) : end])
        )
        near = range(max(page - 4, 1), min(page + 5, pages) + 1)
        foot = " ".join(
            f"<b>{number}</b>"
            if number == page
            else f'<a href="zboard.php?id=free&page={number}&{_SORTED}&{session}">[{number}]</a>'
            for number in near
        )
        return _answer(_PAGE.format(session=session, rows=rows, foot=foot))

    def post(self, number: int) -> Response:
        """The page of that post."""
        posts = self._world.read("board")
        if not 1 <= number <= len(posts):
            raise HTTPException(404, "no such post")
        post, session = posts[number - 1], self._session()
        self._world.fetched(post)
        lines = "<br>\n".join(escape(line) for line in post.text.splitlines())
        rows = (
            f"<tr><td><b>{escape(post.title)}</b></td></tr>\n"
            f"<tr><td>글쓴이 : {post.author} &nbsp; 날짜 : {_when(post):%y-%m-%d %H:%M} &nbsp; "
            f"조회 : {post.number % 97}</td></tr>\n"
            f"<tr><td style='word-break:break-all;'>{lines}</td></tr>\n"
        )
        foot = f'<a href="zboard.php?id=free&{_SORTED}&{session}">목록보기</a>'
        return _answer(_PAGE.format(session=session, rows=rows, foot=foot))

    def _session(self) -> str:
        seed = f"{self._world.config.seed} {next(self._requests)}"
        return f"PHPSESSID={hashlib.blake2b(seed.encode(), digest_size=16).hexdigest()}"


def _when(post: LibraryItem) -> datetime:
    return datetime.fromtimestamp(int(post.event), KST)


def _answer(html: str) -> Response:
    """EUC-KR that only the page itself names."""
    return Response(encode_euckr(html), headers={"Content-Type": "text/html"})


def old_board_router(world: World) -> APIRouter:
    """Routes under /bbs."""
    router = APIRouter()
    board = OldBoard(world)

    @router.get("/bbs/zboard.php")
    async def listing(page: int = 1) -> Response:
        return board.listing(page)

    @router.get("/bbs/view.php")
    async def post(request: Request, no: int) -> Response:
        if parse_qs(request.url.query, encoding="euc-kr").get("category") != [_CATEGORY]:
            raise HTTPException(404, "no such category")
        return board.post(no)

    return router
