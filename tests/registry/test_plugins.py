"""A package outside the tree adds one of each kind, and what it adds passes the contract suites."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "plugins"), str(HERE / "packages"))),
    "EXAMPLES": "0.1",
}
NAMES = {
    "embedding.server.policies.traits:POLICIES": "outside-ssp",
    "embedding.exchange.compression.traits:COMPRESSIONS": "outside-topk",
    "embedding.models.traits:MODELS": "outside-sgns",
    "embedding.trends.estimators:ESTIMATORS": "outside-squared",
    "embedding.text.tokenizers:TOKENIZERS": "outside-words",
    "embedding.sources.kinds:SOURCES": "outside-lines",
}
SUITES = (
    "server/test_policies.py",
    "exchange/test_compression.py",
    "models/test_trainers.py",
    "trends/test_shift.py",
    "text/test_tokenizers.py",
    "sources/test_contract.py",
)


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )


def test_names_are_known_before_anything_of_the_package_is_imported() -> None:
    code = f"""
import sys
from importlib import import_module
for where, name in {NAMES!r}.items():
    module, _, registry = where.partition(":")
    assert getattr(import_module(module), registry).check(name) == name
assert not any(name.startswith("yeoron_outside") for name in sys.modules)
"""
    done = python("-c", code)
    assert done.returncode == 0, done.stderr


def test_what_it_does_not_declare_is_refused_by_its_name() -> None:
    code = """
from embedding.kernel.errors import ConfigError
from embedding.server.compatibility import NEEDS
for need in NEEDS:
    names = [name for name in need.registry if name.startswith("outside-")]
    for name in names:
        try:
            need.check(name)
            print("passes", need.feature, name)
        except ConfigError as error:
            assert name in str(error) and str(error).endswith(" accepted."), error
"""
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.splitlines()) == {
        "passes shards outside-ssp",
        "passes server groups outside-ssp",
        "passes ranked replay or source weights outside-sgns",
    }


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_it_passes_the_contract_suite(suite: str) -> None:
    options = ("-q", "-k", "outside-", "-p", "no:cacheprovider", "-p", "no:xdist")
    done = python("-m", "pytest", *options, f"tests/{suite}")
    assert done.returncode == 0, done.stdout[-2_000:]
    assert " passed" in done.stdout
