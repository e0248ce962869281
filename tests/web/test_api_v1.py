"""The versioned answers: what is described is what comes."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from jsonschema import Draft202012Validator

from embedding.trends import storage
from embedding.web.app import create_app

ASKED = {
    "/stories": {},
    "/windows": {},
    "/sources": {},
    "/scores": {"limit": 7},
    "/compare": {"a": "코로나", "b": "영화"},
    "/contrast": {"a": "뉴스", "b": "게시판", "limit": 3},
    "/evidence": {"w": "코로나"},
    "/word": {"w": "코로나"},
    "/moved": {},
    "/born": {},
    "/risen": {},
    "/fallen": {},
}


@pytest.fixture(scope="module")
def schema(client):
    return client.get("/api/v1/openapi.json").json()


def test_the_description_stands_behind_the_login(config, tmp_path, client_of):
    alone = config.model_copy(update={"token_file": tmp_path / "token"})
    answer = client_of(create_app(alone)).get("/api/v1/openapi.json")
    assert answer.status_code == 401
    assert answer.json()["error"].endswith(".")


def test_everything_is_described_and_only_read(schema):
    for path, methods in schema["paths"].items():
        assert path.startswith("/api/v1/") or path == "/feed.atom"
        assert set(methods) == {"get"}
        one = methods["get"]
        assert one["summary"]
        assert one["description"]
        assert one["security"] == [{"HTTPBearer": []}]
        assert {"401", "429"} <= set(one["responses"]) or path == "/feed.atom"
    assert {f"/api/v1{path}" for path in ASKED} <= set(schema["paths"])


@pytest.mark.parametrize("path", ASKED)
def test_an_answer_is_as_described(client, schema, path):
    answer = client.get(f"/api/v1{path}", params=ASKED[path])
    assert answer.status_code == 200, answer.text
    content = schema["paths"][f"/api/v1{path}"]["get"]["responses"]["200"]["content"]
    found = {**content["application/json"]["schema"], "components": schema["components"]}
    Draft202012Validator(found).validate(answer.json())


def test_the_same_answers_stand_at_the_address_of_before(client):
    assert client.get("/api/moved").text == client.get("/api/v1/moved").text


def test_a_window_is_known_by_its_label(client):
    ids = [one["window"]["id"] for one in client.get("/api/v1/windows").json()["windows"]]
    answer = client.get("/api/v1/stories", params={"id": "2020-02"}).json()
    assert answer["snapshot"]["id"] == ids[-2]
    assert client.get("/api/v1/stories", params={"id": "2030-02"}).status_code == 404


def test_stories_say_how_sure_and_where(client):
    answer = client.get("/api/v1/stories", headers={"accept-language": "en"}).json()
    one = next(s for s in answer["stories"] if any(w["word"] == "코로나" for w in s["words"]))
    assert "At most 1 in" in one["said"][1]
    assert {a["url"] for a in one["addresses"]} >= {"https://news.example/0"}
    assert all(urlsplit(a["url"]).scheme in ("http", "https") for a in one["addresses"])
    page = urlsplit(one["page"])
    assert page.netloc
    assert client.get(page.path).status_code == 200


def test_scores_come_in_parts_and_are_those_of_the_report(client, config):
    first = client.get("/api/v1/scores", params={"limit": 5}).json()
    then = client.get("/api/v1/scores", params={"limit": 5, "offset": 5}).json()
    assert [row["rank"] for row in first["rows"] + then["rows"]] == list(range(1, 11))
    saved = storage.load(config.reports, first["snapshot"]["id"])
    assert first["rows"][0]["word"] == saved.moved[0].word
    assert first["total"] > 10
    end = client.get("/api/v1/scores", params={"offset": first["total"]}).json()
    assert end["rows"] == []


def test_sources_have_losses(client):
    rows = client.get("/api/v1/sources").json()["sources"]
    assert {row["source"] for row in rows} == {"뉴스", "게시판", "댓글"}
    assert max(rows, key=lambda row: row["excess"])["source"] == "게시판"


def test_any_two_windows(client):
    answer = client.get("/api/v1/between", params={"then": "2019-12", "now": "2020-03"}).json()
    assert answer["compared_with"]["label"] == "2019-12"


@pytest.mark.parametrize(
    ("path", "status", "part"),
    [
        ("/api/v1/nothing", 404, "there is no such answer"),
        ("/api/v1/deep/nothing", 404, "there is no such answer"),
        ("/api/v1/stories?limit=x", 422, "limit"),
        ("/api/v1/scores?limit=0", 422, "limit"),
        ("/api/v1/compare?a=코로나&b=코로니", 400, "nearest spellings are 코로나"),
        ("/api/v1/contrast?a=뉴스&b=없음", 400, "has 게시판, 뉴스, 댓글"),
        ("/api/v1/between?then=2020-03&now=2019-12", 400, "does not lie before"),
    ],
)
def test_a_bad_question_gets_a_sentence(client, path, status, part):
    answer = client.get(path)
    assert answer.status_code == status
    assert part in answer.json()["error"]
