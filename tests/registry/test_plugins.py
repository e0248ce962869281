"""One file of a package outside the tree adds a thing, and it passes the contract suites."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
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
    "embedding.importing.readers:READERS": "outside-tabs",
}
SUITES = (
    "server/policies/test_policies.py",
    "exchange/test_compression.py",
    "exchange/test_topologies.py",
    "models/test_trainers.py",
    "trends/test_shift.py",
    "text/test_tokenizers.py",
    "sources/test_contract.py",
    "importing/test_contract.py",
)


def python(*arguments: str, paths: tuple[Path, ...] = (OUTSIDE,)) -> subprocess.CompletedProcess:
    folders = map(str, (ROOT, ROOT / "plugins", ROOT / "neighbours", *paths))
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders), "EXAMPLES": "0.1"},
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )


@pytest.fixture(scope="module")
def passed() -> list[str]:
    """What passes of the contract suites, with a package outside."""
    suites = [f"tests/{suite}" for suite in SUITES]
    quiet = ("-v", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist")
    done = python("-m", "pytest", *quiet, "-k", "outside-", *suites)
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    return [line for line in done.stdout.splitlines() if " PASSED" in line]


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
def test_a_thing_of_one_file_passes_its_contract_suite(passed: list[str], suite: str) -> None:
    assert any(line.startswith(f"tests/{suite}") and "outside-" in line for line in passed)


def test_the_package_that_the_page_shows_passes_its_suite(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    # The first of each kind is of the package; later ones show other things.
    shown = dict(reversed(re.findall(r"```(python|toml)\n(.*?)```", page, re.DOTALL)))
    project = tomllib.loads(shown["toml"])["project"]
    (group, entries), *others = project["entry-points"].items()
    (name, module), *more = entries.items()
    assert not others
    assert not more
    package, _, file = module.partition(".")
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").touch()
    (tmp_path / package / f"{file}.py").write_text(shown["python"], encoding="utf-8")
    installed = tmp_path / f"{package}-{project['version']}.dist-info"
    installed.mkdir()
    installed.joinpath("METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n",
        encoding="utf-8",
    )
    installed.joinpath("entry_points.txt").write_text(
        f"[{group}]\n{name} = {module}\n", encoding="utf-8"
    )
    suite = re.search(rf"pytest (\S+) -k {name}$", page, re.MULTILINE)
    assert suite is not None
    quiet = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist")
    done = python("-m", "pytest", *quiet, suite[1], "-k", name, paths=(tmp_path,))
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    assert " passed" in done.stdout
