"""Vectors that cannot be read yet: every reader says what is missing in place of neighbours.

And a window that was cut at its time limit, before its text had been learnt, says so. The live
model is asked in tests/server/test_live.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from fastapi import Depends
from fastapi.testclient import TestClient

import yeoron
from embedding import cli
from embedding.snapshots.store import SnapshotStore
from embedding.trends.report import build_report
from embedding.web.app import create_app
from embedding.web.config import WebConfig

WORD = "코로나"
COLLAPSED = {"mean_cosine": 0.99, "first_axis": 0.98, "words_read": 9_400.0}
MISSING = "about 41,000 more words are needed"


def published(folder: Path, planted: ModuleType, quality: dict[str, float]) -> str:
    """A store whose last window has these figures."""
    store = SnapshotStore(str(folder))
    *earlier, last = planted.stream(planted.Plan(windows=3, fillers=100))
    parent = None
    for data in (*earlier, replace(last, quality=quality)):
        parent = store.publish(replace(data, parent=parent)).id
    return str(folder)


@pytest.fixture(scope="module")
def folder(planted: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> str:
    return published(tmp_path_factory.mktemp("unread"), planted, COLLAPSED)


@pytest.fixture(scope="module")
def unsettled(planted: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> str:
    return published(tmp_path_factory.mktemp("unsettled"), planted, {"settled": 0.0})


@pytest.fixture
def yeoron_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., str]:
    """Standard output and error of a command, in one line."""

    def call(*arguments: str) -> str:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["yeoron", *arguments])
        monkeypatch.setattr(cli, "leave_no_core", lambda: None)
        with pytest.raises(SystemExit) as left:
            cli.main()
        said = capsys.readouterr()
        assert not left.value.code, said.err
        return " ".join(f"{said.out} {said.err}".split())

    return call


def page(folder: str) -> TestClient:
    app = create_app(WebConfig(snapshots=folder), dependencies=[Depends(lambda: None)])
    return TestClient(app)


@pytest.fixture(scope="module")
def pages(folder: str) -> Iterator[TestClient]:
    with page(folder) as client:
        yield client


@pytest.mark.parametrize("path", ["/", f"/word?w={WORD}", f"/map?w={WORD}"])
@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "About 41,000 more words are needed."),
        ("ko", "낱말 약 41,000개 분량의 글이 더 필요합니다."),
    ],
)
def test_the_page(pages: TestClient, path: str, language: str, sentence: str) -> None:
    answer = pages.get(path, headers={"accept-language": language})
    assert answer.status_code == 200
    assert answer.text.count(sentence) == 1
    if path.startswith("/map"):
        assert "map-card" in answer.text, "earlier windows can be read"


def test_the_map_of_a_word_that_no_window_can_place(planted: ModuleType, tmp_path: Path) -> None:
    store = SnapshotStore(str(tmp_path))
    first = planted.stream(planted.Plan(windows=1, fillers=100))[0]
    store.publish(replace(first, quality=COLLAPSED))
    with page(str(tmp_path)) as client:
        answer = client.get(f"/map?w={WORD}", headers={"accept-language": "en"})
        assert answer.status_code == 200
        assert "About 41,000 more words are needed." in answer.text
        assert "map-card" not in answer.text
        assert client.get("/map?w=없는말").status_code == 404


def test_the_data_of_the_page(pages: TestClient) -> None:
    found = pages.get(f"/api/word?w={WORD}").json()
    last = found["points"][-1]
    assert last["neighbours"] == []
    assert MISSING in str(found["notes"])


@pytest.mark.parametrize("command", [("snapshot", "neighbours", WORD), ("trends", "word", WORD)])
def test_the_command_line(
    yeoron_command: Callable[..., str], folder: str, command: tuple[str, ...]
) -> None:
    assert MISSING in yeoron_command(*command, "--snapshots", folder)


def test_nothing_is_told_as_moved(yeoron_command: Callable[..., str], folder: str) -> None:
    said = yeoron_command("trends", "moved", "--snapshots", folder)
    assert MISSING in said
    assert build_report(SnapshotStore(folder)).moved == ()


def test_the_python_package(folder: str) -> None:
    store = yeoron.open(folder)
    near = store.nearest(WORD)
    assert len(near) == 0
    assert MISSING in repr(near)
    last = store.word(WORD).history()[-1]
    assert last["neighbours"] == []
    assert MISSING in repr(store.word(WORD))
    assert MISSING in repr(store.moved())


@pytest.mark.filterwarnings("ignore:(?s).*type hint")
def test_a_model_of_mlflow(folder: str, tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
    from embedding_airflow.tracking.versions import save_model

    store = SnapshotStore(folder)
    readable, unread = (store.open(ref.id) for ref in store.list()[-2:])
    for name, snapshot in (("a", readable), ("b", unread)):
        save_model(tmp_path / name, snapshot)
    known = mlflow.pyfunc.load_model(str(tmp_path / "a")).predict([WORD], params={"n": 2})
    assert list(known.neighbour) == [word for word, _ in readable.neighbours(WORD, 2)]
    (line,) = mlflow.pyfunc.load_model(str(tmp_path / "b")).predict([WORD]).to_dict("records")
    assert (line["neighbour"], line["rank"]) == ("", 0)
    assert unread.id in line["reason"]
    assert MISSING in line["reason"]


def test_a_window_that_was_cut_at_its_limit_says_so(
    yeoron_command: Callable[..., str], unsettled: str
) -> None:
    report = build_report(SnapshotStore(unsettled))
    (note,) = [note for note in report.notes if note.code == "not_converged"]
    assert "server.convergence_seconds" in note.text
    assert report.moved, "it is compared all the same"
    assert note.text in yeoron_command("trends", "moved", "--snapshots", unsettled)
    assert note.text in repr(yeoron.open(unsettled).moved())
    with page(unsettled) as client:
        for language, sentence in (
            ("en", "closed before training finished"),
            ("ko", "학습이 끝나기 전에"),
        ):
            assert sentence in client.get("/", headers={"accept-language": language}).text


def test_a_window_that_had_settled_says_nothing(planted: ModuleType, tmp_path: Path) -> None:
    report = build_report(SnapshotStore(published(tmp_path, planted, {"settled": 1.0})))
    assert "not_converged" not in {note.code for note in report.notes}
