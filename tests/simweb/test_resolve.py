from __future__ import annotations

from pathlib import Path

import pytest

from embedding.kernel.errors import InputError
from yeoron_simweb.config import SimwebConfig
from yeoron_simweb.resolve import resolve_corpus

LINE = '{"date":"2020-02-01","text":"글"}\n'


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("YEORON_DATA", raising=False)
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    return tmp_path


def corpus(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(LINE, encoding="utf-8")
    return path


def test_the_order_is_setting_variable_shared_generated(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert resolve_corpus(SimwebConfig()).name == "generated"
    corpus(workplace / "shared/data/a.jsonl")
    assert resolve_corpus(SimwebConfig()).name == "../shared/data/a.jsonl"
    monkeypatch.setenv("YEORON_DATA", str(corpus(workplace / "named/b.jsonl")))
    assert resolve_corpus(SimwebConfig()).name.endswith("b.jsonl")
    given = corpus(workplace / "given/c.jsonl")
    assert resolve_corpus(SimwebConfig(corpus=given)).name == str(given)
    assert resolve_corpus(SimwebConfig(corpus=Path("generated"))).name == "generated"


def test_a_folder_gives_its_petitions_first(workplace: Path) -> None:
    corpus(workplace / "data/a.jsonl")
    corpus(workplace / "data/petitions.jsonl.xz")
    with pytest.raises(InputError, match=r"petitions\.jsonl\.xz: not a complete xz"):
        resolve_corpus(SimwebConfig(corpus=workplace / "data"))


def test_what_was_asked_for_and_is_not_there_is_an_error(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workplace / "empty").mkdir()
    with pytest.raises(InputError, match=r"corpus: .*holds no corpus"):
        resolve_corpus(SimwebConfig(corpus=workplace / "empty"))
    monkeypatch.setenv("YEORON_DATA", str(workplace / "empty"))
    with pytest.raises(InputError, match="YEORON_DATA"):
        resolve_corpus(SimwebConfig())
    monkeypatch.setenv("YEORON_DATA", str(workplace / "nowhere"))
    with pytest.raises(InputError, match="no such corpus"):
        resolve_corpus(SimwebConfig())


def test_a_shared_folder_without_corpus_is_passed_over(workplace: Path) -> None:
    (workplace / "shared/data").mkdir(parents=True)
    assert resolve_corpus(SimwebConfig()).name == "generated"
