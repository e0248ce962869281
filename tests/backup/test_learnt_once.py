"""A home that is restored from the middle of a crawl learns each document once."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlkills import MODEL, NODES, Crawl, documents
from embedding.backup.collecting import back_up
from embedding.backup.restoring import restore
from embedding.settings import PathsConfig, Settings
from yeoron_simweb.testing import running


def of(folder: Path, crawl: Crawl | None) -> Settings:
    settings = Settings(paths=PathsConfig(home=folder), model=MODEL)
    return settings if crawl is None else settings.model_copy(update={"server": crawl.config})


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_each_document_is_learnt_once(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with running(None, documents()) as base:
        before = Crawl(first, base)
        before.serve()
        try:
            for name in NODES:
                before.start(name)
            before.until(lambda: before.learnt() >= 80, "before the backup")
            manifest = back_up(of(first, before), str(tmp_path / "backup"))
        finally:
            before.end()
        assert "frontier/yeoron.db" in manifest.files
        restore(of(second, None), str(tmp_path / "backup"))
        after = Crawl(second, base)
        after.serve()
        try:
            held = after.learnt()
            assert 80 <= held < 270, "the backup was to be of the middle"
            for name in NODES:
                after.start(name)
            after.until(lambda: after.learnt() >= 270, "all is learnt")
            after.until(lambda: after.open() == 0, "everything is acknowledged")
            assert after.learnt() == 270
            counts = after.word_counts()
            numbered = {word: n for word, n in counts.items() if word.startswith("글")}
            assert numbered == {f"글{i}번": 2 for i in range(270)}
        finally:
            after.end()
