"""The page alone: token, session, redirects."""

from __future__ import annotations

import stat

import httpx
import pytest

from embedding.kernel.config import validate
from embedding.kernel.errors import ConfigError
from embedding.web.app import create_app
from embedding.web.config import WebConfig
from embedding.web.login import Tries
from embedding.web.tokens import ANALYST, accounts

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
    answer = client.post("/login", data={"token": token, "next": target})
    assert answer.headers["location"] == "/"


@pytest.fixture
def door(config, tmp_path, client_of):
    """Clients of pages that know the same accounts, beside the token of each."""

    def opened(token: str = "t" * 20) -> httpx.Client:
        file = tmp_path / token[0]
        file.write_text(token)
        files = {"token_file": file, "accounts": tmp_path / "accounts.sqlite"}
        return client_of(create_app(config.model_copy(update=files)))

    return opened


def logged_in(client: httpx.Client, name: str, secret: str) -> str | None:
    """The cookie that a browser gets; None where it is refused."""
    return client.post("/login", data={"name": name, "token": secret}).cookies.get(COOKIE)


def status(client: httpx.Client, cookie: str, path: str = "/snapshots") -> int:
    client.cookies.clear()
    return client.get(path, headers={"cookie": f"{COOKIE}={cookie}".encode()}).status_code


def test_a_session_ends_with_the_token_and_with_its_time(door, tmp_path, monkeypatch):
    cookie = logged_in(door(), "", "t" * 20)
    assert cookie is not None
    assert status(door(), cookie) == 200
    assert status(door("u" * 20), cookie) == 303
    assert status(door(), cookie[:-1] + ("x" if cookie[-1] != "x" else "y")) == 303
    assert cookie.encode() not in (tmp_path / "accounts.sqlite").read_bytes()
    monkeypatch.setattr(WebConfig, "session_hours", 0.0001)
    client = door()
    short = client.post("/login", data={"token": "t" * 20}).headers["set-cookie"]
    assert status(client, short.partition("=")[2].partition(";")[0]) == 303


def test_a_session_ends_with_the_account_that_opened_it(door, tmp_path):
    people = accounts(tmp_path / "accounts.sqlite")
    password = people.make("가람", ANALYST)
    client = door()
    for name, secret in (("가람", "t" * 20), ("나래", password), ("", password), ("가람", "")):
        assert logged_in(client, name, secret) is None
    cookie = logged_in(client, "가람 ", password)
    assert cookie is not None
    assert status(client, cookie) == 200
    people.withdraw("가람")
    assert status(client, cookie) == 303
    assert logged_in(client, "가람", password) is None
    again = people.make("가람")
    assert status(client, cookie) == 303
    assert logged_in(client, "가람", again) is not None


def test_after_logging_out_the_cookie_opens_nothing(alone):
    client, token = alone
    client.post("/login", data={"token": token})
    kept = client.cookies[COOKIE]
    assert client.get("/snapshots").status_code == 200
    client.post("/logout")
    client.cookies.set(COOKIE, kept)
    assert client.get("/snapshots").status_code == 303


@pytest.mark.parametrize("cookie", ["", "x" * 5_000, "가", '"', "%00", "a=b", "\u202e;;"])
def test_any_cookie_is_refused_without_an_error(alone, cookie):
    client, _ = alone
    assert status(client, cookie) == 303


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_login_page_speaks_both_languages(alone, language):
    client, _ = alone
    page = client.get("/login", params={"lang": language}).text
    for text in {"en": ("Name", "Password or token"), "ko": ("이름", "비밀번호 또는 토큰")}[
        language
    ]:
        assert f">{text}</label>" in page


def test_the_token_file_is_private_and_kept(config, tmp_path):
    path = tmp_path / "token"
    with_token = config.model_copy(update={"token_file": path})
    create_app(with_token)
    token = path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    create_app(with_token)
    assert path.read_text() == token
    assert len(token.strip()) >= 32


def test_a_token_that_is_too_short_or_unreadable_is_refused(config, tmp_path):
    (tmp_path / "short").write_text("abc")
    (tmp_path / "file").write_text("x")
    for path, sentence in (
        (tmp_path / "short", "3 characters, at least 16"),
        (tmp_path, "login token"),
        (tmp_path / "file" / "token", "cannot be made"),
    ):
        with pytest.raises(ConfigError, match=sentence):
            create_app(config.model_copy(update={"token_file": path}))


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
