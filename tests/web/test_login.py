"""The page alone: token, session, redirects."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import Response

from embedding.kernel.config import validate
from embedding.kernel.errors import ConfigError
from embedding.web.app import create_app
from embedding.web.config import WebConfig
from embedding.web.login import Login, Tries, ensure_token, local_path
from embedding.web.tokens import ANALYST, OPERATOR, READER, accounts

COOKIE = "yeoron_session"
MOST_CLIENTS = 10_000
MOST_TRIES = 10
TRY_SECONDS = 60.0


@pytest.fixture
def alone(config, tmp_path, client_of):
    with_token = config.model_copy(update={"token_file": tmp_path / "deep" / "token"})
    client = client_of(create_app(with_token))
    return client, (tmp_path / "deep" / "token").read_text().strip()


def test_without_a_session_pages_lead_to_the_login_and_json_says_401(alone):
    client, _ = alone
    answer = client.get("/word/코로나?then=x")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/login?next=%2Fword%2F")
    for path in (
        "/",
        "/search",
        "/snapshots",
        "/word.csv?w=a",
        "/window/x",
        "/window/x/disagreement",
        "/window/x/timeline",
        "/window/x/moved.csv",
    ):
        assert client.get(path).status_code == 303
    assert client.get("/api/moved").status_code == 401
    assert client.get("/api/nothing").status_code == 401
    for path in ("/health", "/login", "/static/app.css", "/static/app.js"):
        assert client.get(path).status_code == 200


def test_the_token_opens_and_leads_back(alone):
    client, token = alone
    answer = client.post("/login", data={"token": token, "next": "/snapshots"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/snapshots")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert token not in cookie
    assert client.get("/snapshots").status_code == 200
    assert client.post("/logout").status_code == 303
    assert client.get("/snapshots").status_code == 303


@pytest.mark.parametrize("data", [{"token": "wrong"}, {}, {"token": "x" * 10_000}, {"token": "가"}])
def test_a_wrong_token_does_not(alone, data):
    client, _ = alone
    answer = client.post("/login", data=data)
    assert answer.status_code == 403
    assert COOKIE not in answer.headers.get("set-cookie", "")
    assert client.get("/").status_code == 303


@pytest.mark.parametrize(
    "target", ["https://evil.example", "//evil.example", "/\\evil", "x", "/\n"]
)
def test_the_way_back_stays_here(alone, target):
    client, token = alone
    assert local_path(target) == "/"
    answer = client.post("/login", data={"token": token, "next": target})
    assert answer.headers["location"] == "/"


def login(folder: Path, token: str = "t" * 20, hours: float = 1.0) -> Login:
    path = folder / "accounts.sqlite"
    return Login(token, accounts(path), path, hours)


def session(one: Login, name: str, secret: str) -> str:
    """The cookie that a browser gets."""
    who = one.accepts(name, secret)
    assert who is not None
    request = Request({"type": "http", "scheme": "http", "path": "/", "headers": []})
    response = Response()
    one.start(request, response, who)
    return response.headers["set-cookie"].partition("=")[2].partition(";")[0]


def test_a_session_ends_with_the_token_and_with_its_time(tmp_path):
    cookie = session(login(tmp_path), "", "t" * 20)
    assert login(tmp_path).who(cookie).role == OPERATOR
    assert login(tmp_path, "u" * 20).who(cookie) is None
    assert login(tmp_path).who(cookie[:-1] + "x") is None
    assert cookie.encode() not in (tmp_path / "accounts.sqlite").read_bytes()
    short = session(login(tmp_path, hours=0.0001), "", "t" * 20)
    assert login(tmp_path).who(short) is None


def test_a_session_ends_with_the_account_that_opened_it(tmp_path):
    people = accounts(tmp_path / "accounts.sqlite")
    password = people.make("가람", ANALYST)
    one = login(tmp_path)
    for name, secret in (("가람", "t" * 20), ("나래", password), ("", password), ("가람", "")):
        assert one.accepts(name, secret) is None
    cookie = session(one, "가람 ", password)
    assert (one.who(cookie).name, one.who(cookie).role) == ("가람", ANALYST)
    people.withdraw("가람")
    assert one.who(cookie) is None
    assert one.accepts("가람", password) is None
    again = people.make("가람")
    assert one.who(cookie) is None
    assert one.accepts("가람", again).role == READER


def test_after_logging_out_the_cookie_opens_nothing(alone):
    client, token = alone
    client.post("/login", data={"token": token})
    kept = client.cookies[COOKIE]
    assert client.get("/snapshots").status_code == 200
    client.post("/logout")
    client.cookies.set(COOKIE, kept)
    assert client.get("/snapshots").status_code == 303


@given(st.text())
def test_any_cookie_is_refused_without_an_error(tmp_path_factory, cookie):
    folder = tmp_path_factory.getbasetemp() / "cookies"
    folder.mkdir(exist_ok=True)
    assert login(folder).who(cookie) is None


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_login_page_speaks_both_languages(alone, language):
    client, _ = alone
    page = client.get("/login", params={"lang": language}).text
    for text in {"en": ("Name", "Password or token"), "ko": ("이름", "비밀번호 또는 토큰")}[
        language
    ]:
        assert f">{text}</label>" in page


def test_the_token_file_is_private_and_kept(tmp_path):
    path = tmp_path / "token"
    token = ensure_token(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert ensure_token(path) == token
    assert len(token) >= 32


def test_a_token_that_is_too_short_or_unreadable_is_refused(tmp_path):
    (tmp_path / "short").write_text("abc")
    with pytest.raises(ConfigError, match="3 characters, at least 16"):
        ensure_token(tmp_path / "short")
    with pytest.raises(ConfigError, match="login token"):
        ensure_token(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="cannot be made"):
        ensure_token(tmp_path / "file" / "token")


def test_who_is_wrong_too_often_waits_and_who_is_right_does_not(alone):
    client, token = alone
    for _ in range(MOST_TRIES):
        assert client.post("/login", data={"token": "wrong"}).status_code == 403
    answer = client.post("/login", data={"token": "wrong"})
    assert answer.status_code == 429
    assert 1 <= int(answer.headers["retry-after"]) <= TRY_SECONDS + 1
    assert client.get("/snapshots").status_code == 303
    # All programs and people of one machine have one address.
    assert client.post("/login", data={"token": token}).status_code == 303


def test_tries_count_by_client_and_for_a_while():
    now = [0.0]
    tries = Tries(lambda: now[0])
    for _ in range(MOST_TRIES):
        assert tries.wait("a") == 0
        tries.note("a")
    assert (tries.wait("a"), tries.wait("b")) == (int(TRY_SECONDS) + 1, 0)
    now[0] = TRY_SECONDS + 0.1
    assert tries.wait("a") == 0
    for at in range(MOST_CLIENTS + 5):
        tries.note(str(at))
    assert len(tries._tries) == MOST_CLIENTS


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::"])
def test_the_login_is_never_sent_in_the_clear(host, tmp_path):
    with pytest.raises(ConfigError, match="is accepted with tls_cert and tls_key"):
        validate(WebConfig, {"host": host}, "yeoron web")
    with pytest.raises(ConfigError, match="together"):
        validate(WebConfig, {"host": host, "tls_cert": tmp_path / "c"}, "yeoron web")
    validate(WebConfig, {"host": host, "tls_cert": "c", "tls_key": "k"}, "yeoron web")
