"""One file adds a thing, outside the tree or in it, and it passes the contract suites."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
OUTSIDE = HERE / "packages"
NAMES = {
    "embedding.server.policies.traits:POLICIES": "outside-ssp",
    "embedding.exchange.compression.traits:COMPRESSIONS": "outside-topk",
    "embedding.exchange.topologies.traits:TOPOLOGIES": "outside-ps",
    "embedding.models.traits:MODELS": "outside-sgns",
    "embedding.trends.estimators:ESTIMATORS": "outside-squared",
    "embedding.text.tokenizers:TOKENIZERS": "outside-words",
    "embedding.sources.kinds:SOURCES": "outside-lines",
}
SUITES = (
    "server/test_policies.py",
    "exchange/test_compression.py",
    "exchange/test_topologies.py",
    "models/test_trainers.py",
    "trends/test_shift.py",
    "text/test_tokenizers.py",
    "sources/test_contract.py",
)
BUILT_IN = {
    "policy": "embedding.server.policies",
    "compression": "embedding.exchange.compression",
    "topology": "embedding.exchange.topologies",
    "model": "embedding.models",
    "estimator": "embedding.trends",
    "tokenizer": "embedding.text",
    "source": "embedding.sources",
}
"""File of `yeoron_outside` → the package where a built-in one of its kind lies."""
JOIN = """
from importlib import import_module
for package in {packages}:
    import_module(package).__path__.append({folder!r} + "/" + package)
"""
"""A plugin of pytest: modules of a folder count as modules of the packages in the tree."""


def python(*arguments: str, path: Path = OUTSIDE) -> subprocess.CompletedProcess[str]:
    folders = (str(ROOT), str(ROOT / "plugins"), str(path))
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders), "EXAMPLES": "0.1"},
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )


def pass_the_contract_suites(names: str, *options: str, path: Path = OUTSIDE) -> None:
    suites = [f"tests/{suite}" for suite in SUITES]
    quiet = ("-v", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist")
    done = python("-m", "pytest", *quiet, "-k", names, *options, *suites, path=path)
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    passed = [line for line in done.stdout.splitlines() if " PASSED" in line]
    for suite in suites:
        assert any(line.startswith(suite) for line in passed), f"nothing of {suite} passed"


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
def test_a_package_outside_the_tree_passes_the_contract_suites() -> None:
    pass_the_contract_suites("outside-")


@pytest.mark.slow
def test_a_file_dropped_into_the_tree_passes_the_contract_suites(tmp_path: Path) -> None:
    for kind, package in BUILT_IN.items():
        text = (OUTSIDE / "yeoron_outside" / f"{kind}.py").read_text(encoding="utf-8")
        (tmp_path / package).mkdir()
        dropped = tmp_path / package / f"dropped_{kind}.py"
        dropped.write_text(text.replace('"outside-', '"dropped-'), encoding="utf-8")
    packages = tuple(BUILT_IN.values())
    join = JOIN.format(packages=packages, folder=str(tmp_path))
    (tmp_path / "joining.py").write_text(join, encoding="utf-8")
    pass_the_contract_suites("dropped-", "-p", "joining", path=tmp_path)
