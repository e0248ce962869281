"""What a snapshot lacks in `yeoron snapshot` and `status`, and `yeoron snapshot amend`."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from embedding.kernel.errors import RefusedError
from embedding.server import service
from embedding.server.config import ServerConfig
from embedding.server.service import running_server
from incomplete import JANUARY, incomplete_store

REASON = "it was cut before its nodes had sent how words were used in it"


@pytest.fixture(scope="module")
def store(planted, tmp_path_factory):
    return incomplete_store(tmp_path_factory.mktemp("broken"), planted)


@pytest.fixture(scope="module")
def amending():
    """Answers of the control call by window, served by a real server on a free port.

    A server of this branch's base has no such call; this stands in for it.
    """
    answers: dict[int, object] = {}

    def amend(body: dict[str, object]) -> object:
        answer = answers[int(str(body["window"]))]
        if isinstance(answer, Exception):
            raise answer
        return answer

    real = service.Controls.calls
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service.Controls, "calls", lambda self: {**real(self), "amend": amend})
        with running_server(ServerConfig(min_count=1)) as server:
            yield server.location, answers


@pytest.fixture
def start(store) -> int:
    return int(datetime(2020, 1, 1, tzinfo=UTC).timestamp())


def test_a_list_names_what_each_lacks_and_why(yeoron, store, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    lines = yeoron("snapshot", "list", "--snapshots", store.uri).out.splitlines()
    rows = [line for line in lines if "2020-" in line and "│" in line]
    assert ["usage, learning" in line for line in rows].count(True) == 1
    assert "usage, learning" in next(line for line in rows if "2020-01" in line)
    assert any(REASON in line and "yeoron snapshot amend 2020-01" in line for line in lines)
    listed = json.loads(yeoron("snapshot", "list", "--snapshots", store.uri, "--json").out)
    lacks = [one["lacks"] for one in listed["snapshots"]]
    assert [bool(one) for one in lacks] == [False, False, True, False]
    assert REASON in lacks[JANUARY][0]


def test_a_snapshot_that_is_shown_says_it_beside_its_manifest(yeoron, store) -> None:
    done = yeoron("snapshot", "show", "2020-01", "--snapshots", store.uri)
    assert json.loads(done.out)["id"].startswith("2020-01-")
    assert REASON in " ".join(done.err.split())
    assert yeoron("snapshot", "show", "2020-02", "--snapshots", store.uri).err == ""


def amend(yeoron, store, location: str, name: str = "2020-01"):
    return yeoron("snapshot", "amend", name, "--snapshots", store.uri, "--server", location)


def test_what_was_amended_is_said_and_what_is_missing_still(yeoron, store, amending, start) -> None:
    location, answers = amending
    answers[start] = {"id": "2020-01-00000002", "revision": 2, "missing": []}
    done = amend(yeoron, store, location)
    assert done.code == 0, done.err
    assert "2020-01-00000002: revision 2 of 2020-01." in done.out
    assert "lacks nothing of its window any more" in done.out
    gone = {"part": "usage", "reason": "document_gone", "where": [], "documents": 4}
    answers[start] = {"id": "2020-01-00000003", "revision": 3, "missing": [gone]}
    said = amend(yeoron, store, location).out
    assert "revision 3" in said
    assert "4 of its documents could not be read again" in said


def test_each_refusal_is_one_sentence(yeoron, store, amending, start) -> None:
    location, answers = amending
    answers[start] = RefusedError("the window was forgotten: its text is gone.", kind="control")
    for name, place, parts in (
        ("2020-01", location, ["2020-01 is not amended", "the window was forgotten"]),
        ("2020-01", "grpc://127.0.0.1:9", ["not amended", "cannot be reached", "`yeoron up`"]),
        ("2031-01", location, ["2031-01"]),
    ):
        done = amend(yeoron, store, place, name)
        assert done.code in (1, 2)
        assert done.out == ""
        assert done.err.startswith("yeoron: ")
        assert done.err.count("yeoron: ") == 1
        for part in parts:
            assert part in " ".join(done.err.split()), done.err


def test_a_server_of_an_older_version_is_named_so(yeoron, store, monkeypatch) -> None:
    known = ("ping", "status", "cut")
    monkeypatch.setattr(
        service.Controls, "calls", lambda self: {name: getattr(self, name) for name in known}
    )
    with running_server(ServerConfig(min_count=1)) as server:
        done = amend(yeoron, store, server.location)
    assert done.code in (1, 2)
    assert "of an older version" in " ".join(done.err.split())


def test_nothing_is_asked_for_a_whole_snapshot(yeoron, store) -> None:
    done = amend(yeoron, store, "grpc://127.0.0.1:9", "2020-02")
    assert done.code == 0
    assert "it lacks nothing of 2020-02" in done.out
