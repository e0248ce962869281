"""A rollback that was cut off, or whose answer was lost, and is asked for again."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from test_rollback import cut

from embedding import rollback
from embedding.crawl.frontier import Frontier
from embedding.crawl.rewinding import blocked
from embedding.kernel.errors import InputError, PlatformError, UnavailableError
from embedding.rollback import finished_rollback, plan_rollback, roll_back
from embedding.settings import Settings, load_settings
from embedding.snapshots.store import SnapshotStore


@dataclass
class World:
    """Pool, server and MLflow, which may lose the answer to a call that they carry out.

    lost   calls whose answers are lost, once each
    dead   calls that are not carried out, once each
    """

    epoch: int = 1
    began_from: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    dead: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    marked: set[str] = field(default_factory=set)
    nodes: bool = True

    def answer(self, name: str, do: Any) -> Any:
        self.calls.append(name)
        if name in self.dead:
            self.dead.remove(name)
            raise UnavailableError(f"{name}: it is away")
        found = do()
        if name in self.lost:
            self.lost.remove(name)
            raise UnavailableError(f"{name}: the answer was lost")
        return found

    def action(self, name: str, body: dict[str, Any]) -> Any:
        def do() -> Any:
            if name == "rollback":
                assert not self.nodes, "nodes still train"
                self.began_from.append(body["to"])
                self.epoch += 1
            return {"epoch": str(self.epoch)}

        return self.answer(name, do)

    def stop_pool(self, settings: Settings) -> list[str]:
        def do() -> list[str]:
            self.nodes = False
            return ["n0"]

        return self.answer("stop_pool", do)

    def attach_pool(self, settings: Settings) -> Any:
        def do() -> Any:
            self.nodes = True
            return SimpleNamespace(nodes=["n0"])

        return self.answer("attach_pool", do)

    def withdraw_versions(self, ids: Any, reason: str, **_: Any) -> dict[str, str | None]:
        return self.answer("withdraw_versions", lambda: self.marked.update(ids) or {"newest": "1"})


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    found = World()
    for name in ("stop_pool", "attach_pool", "withdraw_versions"):
        monkeypatch.setattr(rollback, name, getattr(found, name))
    monkeypatch.setattr(rollback, "ask", lambda _place, _line, *asked: found.action(*asked))
    monkeypatch.setattr(rollback.time, "sleep", lambda _: None)
    return found


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("YEORON_PATHS__HOME", str(tmp_path / "var"))
    return load_settings()


@pytest.fixture
def ids(settings: Settings) -> list[str]:
    """January of news alone, February and March with a board."""
    store, parent, made = SnapshotStore(str(settings.paths.snapshots)), None, []
    for month, board in ((1, 0), (2, 7), (3, 9)):
        sources = {"news": 5, **({"board": board} if board else {})}
        parent = store.publish(cut(month, sources, parent)).id
        made.append(parent)
    settings.paths.frontier.mkdir(parents=True)
    Frontier(settings.database_address("frontier")).close()
    return made


def silent(_: str) -> None: ...


def ended(settings: Settings, world: World, ids: list[str]) -> None:
    """All that a rollback without the board leaves."""
    store = SnapshotStore(str(settings.paths.snapshots))
    assert [ref.id for ref in store.list()] == ids[:1]
    assert set(store.withdrawn()) == set(ids[1:]) == world.marked
    assert set(world.began_from) == {ids[0]}
    assert set(blocked(settings.database_address("frontier"))) == {"board"}
    assert world.nodes


@pytest.mark.parametrize("request_", [{"source": "board"}, {"source": "board", "since": "2020-02"}])
@pytest.mark.parametrize("call", ["stop_pool", "withdraw_versions", "attach_pool"])
@pytest.mark.parametrize("how", ["lost", "dead"])
def test_the_same_request_goes_on_where_a_try_failed(
    settings: Settings, world: World, ids: list[str], call: str, how: str, request_: dict[str, str]
) -> None:
    getattr(world, how).append(call)
    with pytest.raises(UnavailableError, match=call):
        roll_back(settings, plan_rollback(settings, **request_), tell=silent)
    again = plan_rollback(settings, **request_)
    assert (again.base, set(again.withdrawn)) == (ids[0], set(ids[1:]))
    done = roll_back(settings, again, tell=silent)
    assert done.aliases == {"newest": "1"}
    ended(settings, world, ids)


@pytest.mark.parametrize("call", ["status", "rollback"])
@pytest.mark.parametrize("how", ["lost", "dead"])
def test_the_server_is_asked_again_where_its_answer_was_lost(
    settings: Settings, world: World, ids: list[str], call: str, how: str
) -> None:
    getattr(world, how).append(call)
    roll_back(settings, plan_rollback(settings, source="board"), tell=silent)
    ended(settings, world, ids)


def test_another_incarnation_alone_is_no_rollback(
    settings: Settings, world: World, ids: list[str]
) -> None:
    """It died of something else just before it was asked."""
    real = world.action

    def dies(name: str, body: dict[str, Any]) -> Any:
        if name == "rollback" and "rollback" not in world.calls:
            world.epoch += 1
            world.dead.append("rollback")
        return real(name, body)

    world.action = dies  # type: ignore[method-assign]
    roll_back(settings, plan_rollback(settings, source="board"), tell=silent)
    ended(settings, world, ids)


def test_a_server_that_stays_away_is_said(settings: Settings, world: World, ids: list[str]) -> None:
    world.dead.append("status")
    soon = patch.object(rollback, "RESTART_SECONDS", 0.0)
    with soon, pytest.raises(UnavailableError, match="rollback: status: it is away"):
        roll_back(settings, plan_rollback(settings, source="board"), tell=silent)
    roll_back(settings, plan_rollback(settings, source="board"), tell=silent)
    ended(settings, world, ids)


def mlflow_is_away(settings: Settings, world: World, to: str) -> None:
    """A try that fails after the server has gone back."""
    world.dead.append("withdraw_versions")
    with pytest.raises(UnavailableError):
        roll_back(settings, plan_rollback(settings, to=to), tell=silent)


def test_to_a_snapshot_the_retry_still_withdraws_models(
    settings: Settings, world: World, ids: list[str]
) -> None:
    mlflow_is_away(settings, world, ids[0])
    roll_back(settings, plan_rollback(settings, to=ids[0]), tell=silent)
    assert world.marked == set(ids[1:])


def test_another_request_after_one_that_failed(
    settings: Settings, world: World, ids: list[str]
) -> None:
    mlflow_is_away(settings, world, ids[1])
    store = SnapshotStore(str(settings.paths.snapshots))
    plan = plan_rollback(settings, to=ids[0])
    assert set(plan.withdrawn) == set(ids[1:]), "models of both tries"
    store.reinstate([ids[2]])
    roll_back(settings, plan_rollback(settings, to="nothing"), tell=silent)
    assert world.marked == set(ids)
    assert world.began_from == [ids[1], "nothing"]


def test_what_was_done_is_no_retry_but_of_its_own_run(
    settings: Settings, world: World, ids: list[str]
) -> None:
    assert finished_rollback(settings, "manual__1") is None
    done = roll_back(
        settings, plan_rollback(settings, source="board", run="manual__1"), tell=silent
    )
    assert finished_rollback(settings, "manual__1") == done
    assert finished_rollback(settings, "manual__2") is None
    with pytest.raises(InputError, match="no snapshot holds text of source 'board'"):
        plan_rollback(settings, source="board", run="manual__2")


def test_the_task_says_what_an_earlier_try_has_done(
    settings: Settings, world: World, ids: list[str]
) -> None:
    pytest.importorskip("airflow", reason="Airflow is not installed")
    from embedding_airflow.operators.rollback import RollBack

    task = RollBack(task_id="roll_back")
    params = {"source": "board", "confirm": ids[0]}
    context: Any = {"params": params, "run_id": "manual__1"}
    first = task.work(settings, context)
    assert first["done"] is True
    before = list(world.calls)
    assert task.work(settings, context) == first
    assert world.calls == before, "nothing was done twice"
    json.dumps(first)


def test_a_record_that_cannot_be_read_is_said(settings: Settings, ids: list[str]) -> None:
    (settings.paths.home / "rollback.json").write_text("{")
    with pytest.raises(PlatformError, match=r"rollback\.json: cannot be read; remove it"):
        plan_rollback(settings, source="board")
