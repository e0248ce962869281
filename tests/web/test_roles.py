"""Who may do what on the page: a reader reads, an analyst writes, and a refusal says so."""

from __future__ import annotations

import errno
from collections.abc import Callable

import httpx
import pytest
from fastapi import Depends, Request

from embedding.show.team import TeamStore
from embedding.web.app import create_app
from embedding.web.tokens import ACCESS_ROLES, ANALYST, OPERATOR, READER, accounts, allows

FORMS = {
    "/team/watch": {"word": "코로나", "who": "가람"},
    "/team/unwatch": {"word": "코로나"},
    "/team/report": {"format": "none", "who": "가람"},
    "/team/note": {"kind": "word", "about": "코로나", "text": "하나", "who": "가람"},
    "/team/unnote": {"id": "none"},
}
READ = ("/", "/word/코로나", "/team", "/snapshots", "/watch", "/api/v1/windows", "/feed.atom")
SAME = {"sec-fetch-site": "same-origin"}


@pytest.fixture
def as_role(config, tmp_path, client_of) -> Callable[[str], httpx.Client]:
    """A browser in which an account of this role is logged in, by the page's own login."""
    own = config.model_copy(
        update={
            "token_file": tmp_path / "token",
            "accounts": tmp_path / "accounts.sqlite",
            "team": tmp_path / "team.json",
        }
    )

    def made(role: str) -> httpx.Client:
        client = client_of(create_app(own))
        client.headers.update(SAME)
        password = accounts(own.accounts).make(role, role)
        form = {"name": role, "token": password}
        assert client.post("/login", data=form).status_code == 303
        return client

    return made


@pytest.mark.parametrize("role", ACCESS_ROLES)
def test_everybody_reads_and_analysts_write(as_role, tmp_path, role) -> None:
    client = as_role(role)
    for path in READ:
        assert client.get(path).status_code == 200, path
    for path, form in FORMS.items():
        answer = client.post(path, data=form)
        assert answer.status_code == (403 if role == READER else 303), path
    kept = TeamStore(tmp_path / "team.json").read()
    assert len(kept.notes) == (0 if role == READER else 1)
    if kept.notes:
        assert kept.notes[0].who == role, "a note carries the name of the account"


@pytest.mark.parametrize(
    ("language", "sentence"),
    [("en", "Your account can read."), ("ko", "이 계정으로는 보기만 할 수 있습니다.")],
)
def test_a_reader_sees_why_and_no_form(as_role, language, sentence) -> None:
    client = as_role(READER)
    for path in ("/team", "/word/코로나", "/"):
        page = client.get(path, params={"lang": language}).text
        assert sentence in page, path
        assert "/team/note" not in page
        assert "/team/watch" not in page
    refused = client.post("/team/watch", data=FORMS["/team/watch"], params={"lang": language})
    assert refused.status_code == 403
    assert sentence in refused.text


def test_without_a_role_a_login_only_reads(config, tmp_path, client_of) -> None:
    """An application that mounts the page and says nothing of roles."""
    shared = config.model_copy(update={"team": tmp_path / "team.json"})

    def passed(request: Request) -> None:
        request.state.login_name = "somebody"

    client = client_of(create_app(shared, dependencies=[Depends(passed)]))
    assert client.get("/team").status_code == 200
    assert client.post("/team/note", data=FORMS["/team/note"], headers=SAME).status_code == 403


def test_each_role_may_what_the_ones_before_may() -> None:
    assert [(one, two) for one in ACCESS_ROLES for two in ACCESS_ROLES if allows(one, two)] == [
        (READER, READER),
        (ANALYST, READER),
        (ANALYST, ANALYST),
        (OPERATOR, READER),
        (OPERATOR, ANALYST),
        (OPERATOR, OPERATOR),
    ]
    assert not allows("", READER)
    assert not allows("root", READER)


@pytest.mark.parametrize(
    ("language", "sentence"),
    [("en", "The disk is full. Nothing was kept."), ("ko", "디스크가 가득 차서")],
)
def test_a_full_disk_is_said_in_a_sentence(as_role, monkeypatch, language, sentence) -> None:
    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    client = as_role(ANALYST)
    monkeypatch.setattr("os.fsync", full)
    answer = client.post("/team/note", data=FORMS["/team/note"], params={"lang": language})
    assert answer.status_code == 507
    assert sentence in answer.text
