"""What all tests share: how hypothesis explores, and a stream of known changes."""

from __future__ import annotations

import gc
import importlib.util
import os
import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

from generated import examples
from pgserver import PostgresServer, running_postgres

# The machine may be busy: slow examples are no failure. Everybody's run looks at the same examples,
# so that a change is judged by the change; `make explore` looks for new ones.
PATIENT = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=examples()
)
settings.register_profile("same", PATIENT, derandomize=True)
settings.register_profile("explore", PATIENT, print_blob=True)
settings.load_profile("same")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL that all tests of this process share."""
    with running_postgres() as server:
        yield server


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Without collecting garbage, of which there is little: what is imported stays to the end.

    Nor is it looked through afterwards: a million and a half objects, of which each `gc.collect`,
    also one of pytest's own at the end, would make a second.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    """What is left goes with the process: pytest would look through all of it five times."""
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where processes share the tests, they take the files in this order (infra/test.sh)."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    waiting = [one for one in files.values() if _allowed(one)]
    others = [one for one in files.values() if not _allowed(one)]
    waiting.sort(key=lambda one: (-_allowed(one), -len(one)))
    others.sort(key=lambda one: -len(one))
    items[:] = [item for one in dealt(waiting, others) for item in one]


def _allowed(items: Iterable[pytest.Item]) -> float:
    """Seconds that the longest test of a file that starts processes may take; 0: starts none."""
    limits = [mark.args[0] for item in items for mark in item.iter_markers("timeout")]
    slow = any(item.get_closest_marker("slow") for item in items)
    return float(max([1, *limits])) if slow or limits else 0.0


def dealt(waiting: Sequence[list[pytest.Item]], others: Sequence[list[pytest.Item]]) -> list:
    """Both kinds of files mixed, the longest of each first; the last fifth is of the others alone.

    Files that start processes wait much: a file that computes beside each of them uses the time. A
    long file that came last would be waited for by all.
    """
    placed = [
        (part * at / len(kind), one)
        for part, kind in ((0.8, waiting), (1.0, others))
        for at, one in enumerate(kind)
    ]
    return [one for _, one in sorted(placed, key=lambda each: each[0])]


@pytest.fixture(scope="session")
def planted() -> ModuleType:
    """The synthetic stream that the tests of trends, of the page and of the commands publish."""
    path = Path(__file__).parent / "trends" / "planted.py"
    spec = importlib.util.spec_from_file_location("planted", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["planted"] = module
    spec.loader.exec_module(module)
    return module
