"""The JSON answers and the live panel."""

from __future__ import annotations

import json

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from unguarded import unguarded

from embedding.trends.rows import RANKINGS

STATUS = {
    "words_per_second": 1234.5,
    "documents": 99,
    "watermark": "2020-02-03T00:00:00+00:00",
    "lag": {"p50_s": 1.5, "p95_s": 4.0},
    "nodes": {"a": {}, "b": {}},
    "sources": {"뉴스": {"documents": 70, "idle_s": 2.0, "lag_p50_s": 1.0}},
    "faults": {"게시판": {"undated": 12, "http_4xx": 3}},
}


@pytest.mark.parametrize("ranking", RANKINGS)
def test_rankings(client, ranking):
    answer = client.get(f"/api/{ranking}", params={"limit": 1}).json()
    assert answer["ranking"] == ranking
    assert len(answer["rows"]) <= 1
    assert answer["snapshot"]["label"] == "2020-03"


def test_moved_is_what_was_planted(client):
    assert client.get("/api/moved").json()["rows"][0]["word"] == "코로나"


def test_stories_hold_what_was_planted(client):
    answer = client.get("/api/stories").json()
    words = {each["word"] for one in answer["stories"] for each in one["words"]}
    assert {"코로나", "신천지", "마스크"} <= words
    assert answer["snapshot"]["label"] == "2020-03"
    assert len(client.get("/api/stories", params={"limit": 1}).json()["stories"]) == 1


def test_the_report_is_the_saved_one(client, config):
    answer = client.get("/api/report")
    file = config.reports / answer.json()["snapshot"]["id"] / "report.json"
    saved = json.loads(file.read_text("utf-8"))
    del saved["key"]  # by which a finished report is known: its file's alone
    assert answer.json() == saved


def test_a_word(client):
    answer = client.get("/api/word/코로나").json()
    assert [p["label"] for p in answer["points"]][-1] == "2020-03"
    figure = answer["points"][-1]["shift_previous"]
    assert 0.5 < figure["low"] < figure["shift"] <= figure["high"]


def test_snapshots_without_addresses_of_the_store(client, config):
    answer = client.get("/api/snapshots")
    assert len(answer.json()["snapshots"]) == 5
    assert config.snapshots not in answer.text


def test_suggestions_put_the_word_itself_first(client):
    assert client.get("/api/suggest", params={"q": "코로나"}).json()["words"][0] == "코로나"
    assert client.get("/api/suggest", params={"q": ""}).json()["words"] == []
    assert len(client.get("/api/suggest", params={"q": "가", "n": 3}).json()["words"]) <= 3


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/best", 404),
        ("/api/moved?id=2031-01-abcdef01", 404),
        ("/api/moved?id=../../etc", 404),
        ("/api/moved?limit=0", 422),
        ("/api/suggest?q=a&n=1000", 422),
        ("/api/word/쀍쀍", 404),
        ("/api/word", 422),
    ],
)
def test_bad_questions_get_a_sentence(client, path, status):
    answer = client.get(path)
    assert answer.status_code == status
    assert answer.json()["error"].endswith(".")


def test_without_a_status_address_there_is_no_panel(client):
    assert client.get("/api/stream").json() == {"state": "off"}
    assert "data-stream" not in client.get("/snapshots").text


def test_the_panel_reads_the_parameter_server(config, serve, client_of):
    server = FastAPI()
    server.get("/status")(lambda: STATUS)
    address = serve(server)
    live = config.model_copy(update={"status_url": f"{address}/status"})
    client = client_of(unguarded(live))
    answer = client.get("/api/stream").json()
    assert answer["state"] == "live"
    assert (answer["lag_p50_s"], answer["lag_p95_s"]) == (1.5, 4.0)
    assert answer["sources"][0] == {
        "source": "뉴스",
        "documents": 70.0,
        "idle_s": 2.0,
        "lag_p50_s": 1.0,
    }
    assert answer["faults"] == {"게시판": {"undated": 12, "http_4xx": 3}}
    assert "data-stream" in client.get("/snapshots").text


@pytest.fixture
def stream(config, client_of):
    """What the page says of the stream whose status has an address."""

    def read(address: str):
        live = config.model_copy(update={"status_url": address})
        return client_of(unguarded(live)).get("/api/stream").json()

    return read


@pytest.mark.parametrize("body", ["[]", "nonsense", '{"sources": 3}'])
def test_an_answer_that_is_none_counts_as_unreachable(serve, stream, body):
    from starlette.responses import Response

    server = FastAPI()
    server.get("/status")(lambda: Response(body, media_type="application/json"))
    assert stream(f"{serve(server)}/status") == {"state": "unreachable"}


def test_a_server_that_is_not_there_is_unreachable(stream):
    assert stream("http://127.0.0.1:9/status") == {"state": "unreachable"}
    assert stream("not an address") == {"state": "unreachable"}


def test_missing_figures_are_none(serve, stream):
    server, status = FastAPI(), {}
    server.get("/status")(lambda: status)
    address = f"{serve(server)}/status"
    answer = stream(address)
    assert (answer["lag_p50_s"], answer["snapshots"]) == (None, 0)
    windows = {"a": {"snapshot": "a-1"}, "b": {}}
    status |= {"windows": windows, "words_per_second": "many"}
    answer = stream(address)
    assert (answer["snapshots"], answer["words_per_second"]) == (1, None)


def test_a_store_with_a_short_name_leaves_the_sentence_whole(config, tmp_path, monkeypatch):
    (tmp_path / "s").symlink_to(config.snapshots)
    monkeypatch.chdir(tmp_path)
    short = config.model_copy(update={"snapshots": "s"})
    with TestClient(unguarded(short)) as client:
        answer = client.get("/api/moved", params={"id": "zzz"})
    assert answer.json()["error"] == (
        "snapshot zzz: there is none of that id in the store; `yeoron snapshot list` names all."
    )
