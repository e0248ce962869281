"""The tests of the laboratory use helpers and fixtures of the rooms that it is plugged into."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

TESTS = Path(__file__).resolve().parents[1]
for folder in ("worker", "server", "exchange", "lab"):
    sys.path.insert(0, str(TESTS / folder))


def fixtures_of(room: str) -> ModuleType:
    """The module of a room's fixtures; pytest knows it under another name."""
    spec = importlib.util.spec_from_file_location(
        f"fixtures_of_{room}", TESTS / room / "conftest.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


make_bench = fixtures_of("models").make_bench
connect = fixtures_of("server").connect
