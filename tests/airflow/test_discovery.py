"""discover_sources on the real parts: the simulated web, Airflow's database and its web API."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import world

from embedding.crawl.config import DiscoverConfig
from embedding_airflow.operators.discovery import NO_CANDIDATE
from waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
MOMENT = iter(datetime(2025, 1, 1, tzinfo=UTC) + timedelta(minutes=i) for i in range(1000))
DAG = "discover_sources"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[SimpleNamespace]:
    """A sources file that reads one feed of a simulated web."""
    from embedding.settings import load_settings
    from yeoron_simweb.testing import running

    dated = world.documents(3, 60, datetime(2020, 2, 1, tzinfo=UTC), 27)
    parts = ("politics", "society", "life")
    for at, each in enumerate(dated):
        each["part"] = parts[at % 3]
    with running(None, dated) as base, pytest.MonkeyPatch.context() as patch:
        (tmp_path / "sources.toml").write_text(
            f'[[source]]\nname = "known"\nkind = "feed"\nurl = "{base}/news/politics/rss.xml"\n'
            "rate = 500\n"
        )
        settings = world.write_settings(
            tmp_path,
            crawl={"allow_private_hosts": [base.removeprefix("http://")], "rate": 500.0},
            discover={"seeds": [f"{base}/news"], "requests": 80},
        )
        patch.setenv("YEORON_SETTINGS", str(settings))
        patch.setattr(DiscoverConfig, "pages", 6)
        patch.setattr(DiscoverConfig, "samples", 2)
        yield SimpleNamespace(base=base, folder=tmp_path, settings=load_settings())


@contextmanager
def answered(folder: Path, *choices: str) -> Iterator[Callable[[int], list[str]]]:
    """A person answers in the web application as soon as a run asks, one choice a run.

    What is given says what the run of that number was offered.
    """
    person = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "person.py"), DAG, str(folder), *choices],
        stdout=subprocess.DEVNULL,
    )

    def offered(at: int) -> list[str]:
        file = folder / f"{at}.json"
        until(file.exists, "the person did not answer")
        found: list[str] = json.loads(file.read_text(encoding="utf-8"))
        return found

    try:
        yield offered
        assert person.wait(300) == 0
    finally:
        person.kill()
        person.wait(300)


def run(dag_bag: Any) -> Any:
    return dag_bag.dags[DAG].test(logical_date=next(MOMENT), run_conf={})


def states(dag_run: Any) -> dict[str, str]:
    return {ti.task_id: str(ti.state) for ti in dag_run.get_task_instances()}


def test_a_person_approves_and_rejects(place, dag_bag) -> None:
    with answered(place.folder, "first", "none") as offered:
        look_for_sources_twice(place, dag_bag, offered)


def look_for_sources_twice(
    place: SimpleNamespace, dag_bag: Any, offered: Callable[[int], list[str]]
) -> None:
    from embedding.sources.config import load_sources

    first = run(dag_bag)
    assert states(first) == dict.fromkeys(("discover", "approve", "add_sources"), "success")
    *names, last = offered(0)
    assert last == NO_CANDIDATE
    sources = load_sources(place.settings.paths.sources)
    assert [one.name for one in sources] == ["known", names[0]]
    assert sources[1].group == "discovered"
    assert sources[1].url.startswith(place.base)
    kept = json.loads(place.settings.paths.rejected.read_text())
    assert len(kept) == len(names) - 1
    assert "제목" not in place.settings.paths.sources.read_text(encoding="utf-8")

    # What was approved is read and what was rejected is remembered: other places are proposed.
    before = place.settings.paths.sources.read_text(encoding="utf-8")
    second = run(dag_bag)
    assert second.state == "success"
    asked = offered(1)
    assert asked[-1] == NO_CANDIDATE
    assert not set(names) & set(asked)
    assert place.settings.paths.sources.read_text(encoding="utf-8") == before
    assert len(json.loads(place.settings.paths.rejected.read_text())) > len(kept)


def test_without_an_answer_nothing_is_decided(dag_bag) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    task = dag_bag.dags[DAG].get_task("approve")
    with pytest.raises(AirflowSkipException, match="Nobody decided in time"):
        task.process_trigger_event_error({"error_type": "timeout", "error": "late"})
