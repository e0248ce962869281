"""Tokens: made, kept as digests, used, withdrawn; and what they open."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta

import pytest
from fastapi import Depends
from starlette.exceptions import HTTPException

from embedding.kernel.errors import ConfigError, InputError
from embedding.web.app import create_app
from embedding.web.tokens import TOKEN_PREFIX, AccessTokens, TokenRefusedError

MOST_TRIES = 10


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def own(config, tmp_path):
    changes = {"token_file": tmp_path / "token", "tokens": tmp_path / "tokens.sqlite"}
    return config.model_copy(update=changes)


@pytest.fixture
def tokens(own) -> AccessTokens:
    return AccessTokens(own.tokens)


@pytest.fixture
def alone(own, client_of):
    return client_of(create_app(own))


def test_a_token_is_kept_as_a_digest_in_a_private_file(tokens, own):
    token = tokens.make("dashboard")
    assert token.startswith(TOKEN_PREFIX)
    assert len(token) > 40
    assert token.encode() not in own.tokens.read_bytes()
    assert stat.S_IMODE(own.tokens.stat().st_mode) == 0o600
    assert [(one.name, one.role, one.used) for one in tokens.list()] == [
        ("dashboard", "reader", None)
    ]


def test_names_are_checked_and_free_again_once_withdrawn(tokens):
    with pytest.raises(InputError, match="there are: none"):
        tokens.withdraw("a")
    tokens.make("a")
    for name in ("", " ", "x" * 81, "a\n"):
        with pytest.raises(InputError, match="1 to 80"):
            tokens.make(name)
    with pytest.raises(InputError, match="there is one of this name"):
        tokens.make("a")
    tokens.withdraw("a")
    tokens.make("a")
    assert [one.withdrawn is None for one in tokens.list()] == [False, True]


def test_when_it_was_used_last_is_noted_now_and_then(tmp_path):
    start = datetime(2026, 1, 1, tzinfo=UTC)
    now = [start.timestamp()]
    tokens = AccessTokens(tmp_path / "t.sqlite", lambda: now[0])
    token = tokens.make("a")
    used = []
    for seconds in (10, 30, 65):
        now[0] = (start + timedelta(seconds=seconds)).timestamp()
        tokens.check(token)
        used.append(tokens.list()[0].used.second)
    assert used == [10, 10, 10]
    now[0] += 20
    tokens.check(token)
    assert tokens.list()[0].used == start + timedelta(seconds=85)


def test_a_file_that_is_none_of_ours_is_refused(tmp_path):
    (tmp_path / "t").write_text("no database, but long enough to look at" * 100)
    with pytest.raises(ConfigError, match="cannot be used"):
        AccessTokens(tmp_path / "t").make("a")


@pytest.mark.parametrize("token", ["", TOKEN_PREFIX, TOKEN_PREFIX + "가\ud800", "x" * 10_000])
def test_an_unknown_token_is_refused(tokens, token):
    tokens.make("a")
    with pytest.raises(TokenRefusedError, match="not known"):
        tokens.check(token)


def test_a_token_opens_the_answers_and_nothing_else(alone, tokens):
    token = tokens.make("a")
    assert alone.get("/api/v1/moved").status_code == 401
    assert alone.get("/api/v1/moved", headers=bearer(token)).json()["ranking"] == "moved"
    for path in ("/", "/snapshots", "/word/코로나", "/health"):
        answer = alone.get(path, headers=bearer(token))
        assert answer.status_code == 404
        assert answer.json()["error"].endswith(".")
    for path in ("/login", "/logout"):
        assert alone.post(path, headers=bearer(token)).status_code in (404, 405)
    assert tokens.list()[0].used is not None


def test_a_withdrawn_token_gets_401_and_one_sentence(alone, tokens):
    token = tokens.make("a")
    assert alone.get("/api/v1/stories", headers=bearer(token)).status_code == 200
    tokens.withdraw("a")
    answer = alone.get("/api/v1/stories", headers=bearer(token))
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["error"].startswith("this token was withdrawn on ")


def test_in_an_address_a_token_opens_the_feed_alone(alone, tokens):
    token = tokens.make("a")
    assert alone.get("/feed.atom", params={"token": token}).status_code == 200
    assert alone.get("/api/v1/moved", params={"token": token}).status_code == 401
    assert alone.get("/feed.atom").status_code == 401
    assert alone.get("/feed.atom", params={"token": "wrong"}).status_code == 401


def test_who_guesses_waits_and_the_others_do_not(alone, tokens):
    for _ in range(MOST_TRIES):
        assert alone.get("/api/v1/moved", headers=bearer(f"{TOKEN_PREFIX}no")).status_code == 401
    answer = alone.get("/api/v1/moved", headers=bearer(f"{TOKEN_PREFIX}no"))
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) > 0
    good = bearer(tokens.make("a"))
    assert alone.get("/api/v1/moved", headers=good).status_code == 200


def test_a_token_may_ask_so_often(own, tokens, client_of):
    client = client_of(create_app(own.model_copy(update={"requests_per_minute": 2})))
    token = tokens.make("a")
    codes = [client.get("/api/v1/windows", headers=bearer(token)).status_code for _ in range(3)]
    assert codes == [200, 200, 429]


def test_behind_another_login_a_token_opens_the_answers_too(own, tokens, client_of):
    def closed() -> None:
        raise HTTPException(401, "another login")

    client = client_of(create_app(own, dependencies=[Depends(closed)]))
    assert client.get("/api/v1/moved").status_code == 401
    assert client.get("/api/v1/moved", headers=bearer(tokens.make("a"))).status_code == 200
    assert client.get("/api/v1/moved", headers=bearer("of.that.login")).status_code == 401
    assert client.get("/feed.atom", params={"token": tokens.make("b")}).status_code == 200
