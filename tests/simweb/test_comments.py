from __future__ import annotations

from datetime import datetime

import httpx
import pytest

from yeoron_simweb.config import SimwebConfig
from yeoron_simweb.testing import running


def test_cursors_lead_through_all_comments_newest_first(web: httpx.Client) -> None:
    found, cursor = [], ""
    while cursor is not None:
        answer = web.get("/comments/api", params={"cursor": cursor, "limit": 10}).json()
        found += answer["comments"]
        cursor = answer["next_cursor"]
    assert len({comment["id"] for comment in found}) == len(found) == answer["total"] == 45
    times = [datetime.fromisoformat(comment["created_at"]) for comment in found]
    assert times == sorted(times, reverse=True)
    assert found[0]["body"].startswith("comments 소식")
    assert "마스크" in found[0]["body"]
    assert found[0]["author"]


def test_a_comment_belongs_to_an_article_that_exists(web: httpx.Client) -> None:
    for comment in web.get("/comments/api?limit=5").json()["comments"]:
        assert web.get(comment["article_url"]).status_code == 200


@pytest.mark.parametrize("path", ["/comments/api", "/board/api/posts"])
@pytest.mark.parametrize("cursor", ["x", "c-1", "c1e9", "c٣", "c" + "9" * 40])
def test_a_foreign_cursor_is_refused(web: httpx.Client, path: str, cursor: str) -> None:
    assert web.get(path, params={"cursor": cursor, "before": cursor}).status_code == 400


def test_cursors_stay_valid_while_comments_arrive() -> None:
    documents = [
        {"date": f"2020-02-0{n + 1}", "text": f"글 {n}", "part": "comments"} for n in range(5)
    ]
    # The first two fill the backlog; reading one of them lets the clock go on.
    config = SimwebConfig(speed=1e9, autostart=True, max_backlog=2, page_items=1)
    with running(config, documents) as url, httpx.Client(base_url=url) as web:
        first = web.get("/comments/api").json()
        assert first["comments"][0]["body"] == "글 1"
        rest = web.get("/comments/api", params={"cursor": first["next_cursor"]}).json()
        assert [c["body"] for c in rest["comments"]] == ["글 0"]
        assert rest["next_cursor"] is None
        assert rest["total"] > first["total"] == 2
