"""What all tests share: how hypothesis explores, and a stream of known changes."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

# The machine may be busy: slow examples are no failure. A developer's run explores at random;
# continuous integration repeats the same examples, so that a change is judged by the change.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("developer", PATIENT)
settings.register_profile("ci", PATIENT, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "developer")


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
