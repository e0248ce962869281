"""What is installed is locked by version and hash, and another file is refused in a sentence."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCKS = ROOT / "infra" / "locks"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
GROUPS = PROJECT["dependency-groups"]
TOOLS = ("test", "docs", "dev")
FILES = ("build", "cpu", "cuda", "run", "test", "more")
ENTRY = re.compile(
    r"[a-z0-9][a-z0-9-]*==[^ ;]+( ; [^\\]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+", re.ASCII
)


def locked(*files: str) -> set[str]:
    names = set()
    for file in files:
        names |= set(re.findall(r"^([a-z0-9-]+)==", (LOCKS / f"{file}.txt").read_text(), re.M))
    return names


def named(wishes: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(wish).name) for wish in wishes} - {"yeoron"}


@pytest.mark.parametrize("file", FILES)
def test_every_package_has_a_version_and_the_hashes_of_its_files(file: str) -> None:
    text = (LOCKS / f"{file}.txt").read_text(encoding="utf-8")
    head, entries = text.split("\n", 1)
    assert head.startswith("# ")
    rest = ENTRY.sub("", entries)
    assert rest.strip() == ""
    assert entries.count("==") > 0
    # Who trusts which index is a matter of the machine.
    assert "://" not in text


def test_every_package_that_is_declared_is_locked() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    for wishes in (PROJECT["project"]["dependencies"], *extras.values(), *GROUPS.values()):
        assert named(wishes) - locked(*FILES) == set()
    run = named([wish for name in extras if name != "bench" for wish in extras[name]])
    assert run - locked("run", "cpu") == set()
    assert run - locked("run", "cuda") == set()
    for group in TOOLS:
        assert named(GROUPS[group]) - locked("test", "run") == set()


def test_what_running_needs_has_no_tool_of_tests_and_no_package_is_locked_twice() -> None:
    tools = named([wish for group in TOOLS for wish in GROUPS[group]])
    # MLflow and Airflow bring these.
    assert locked("build", "cpu", "cuda", "run") & tools == {
        *("flask", "flask-cors", "grpcio", "jsonschema"),
    }
    parts = [locked("build"), locked("cuda"), locked("run"), locked("test"), locked("more")]
    assert sum(map(len, parts)) == len(set.union(*parts))


def test_what_installs_is_locked_too() -> None:
    wanted = named([*PROJECT["build-system"]["requires"], *GROUPS["build"]])
    assert {"pip", "setuptools", "hatchling"} <= wanted
    assert wanted - locked("build") == set()


def test_both_builds_of_torch_have_one_version() -> None:
    version = {
        file: re.search(r"^torch==(\S+)", (LOCKS / f"{file}.txt").read_text(), re.M)[1]
        for file in ("cpu", "cuda")
    }
    assert version["cpu"] == f"{version['cuda']}+cpu"


HIDDEN = """
import importlib, importlib.metadata, pkgutil, sys
tools = set(sys.argv[1:])
gone = {
    module for module, names in importlib.metadata.packages_distributions().items()
    if {name.lower().replace("_", "-") for name in names} <= tools
}
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name in gone:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Gone())
ours = ("embedding", "embedding_airflow", "yeoron")
ours += ("yeoron_bench", "yeoron_demo", "yeoron_lab", "yeoron_simweb")
names = ["airflow.cli.cli_parser", "mlflow.server", "distributed", "bokeh"]
names += ["supervisor.supervisord"]
for room in ours:
    folder = importlib.import_module(room).__path__
    names += [found.name for found in pkgutil.walk_packages(folder, f"{room}.")]
for name in names:
    try:
        if not name.endswith("__main__"):
            importlib.import_module(name)
    except ModuleNotFoundError as error:
        # It comes with the torch for GPUs.
        if error.name != "triton":
            raise
print(*sorted(gone))
"""


def test_nothing_that_runs_imports_a_tool_of_tests() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", HIDDEN, *locked("test")],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert {"pytest", "hypothesis", "moto"} <= set(done.stdout.split())


def wheel(folder: Path, name: str, version: str = "1.0", needs: str = "") -> str:
    """Writes a wheel with one empty module; its hash."""
    folder.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{name}.py", "")
        file.writestr(f"{info}/METADATA", about + (f"Requires-Dist: {needs}\n" if needs else ""))
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def install(tmp_path):
    """Runs the script with these locks in a folder and an environment of its own."""
    venv.create(tmp_path / ".venv", with_pip=False)
    for site in (tmp_path / ".venv").glob("lib/python*/site-packages"):
        # pip and setuptools, without an index to get them from.
        (site / "parent.pth").write_text(sysconfig.get_path("purelib"))
    (tmp_path / "infra" / "locks").mkdir(parents=True)
    shutil.copy(ROOT / "infra" / "install.sh", tmp_path / "infra" / "install.sh")

    def run(what: str, locks: Mapping[str, str], **env: str) -> subprocess.CompletedProcess[str]:
        for name, text in {"cuda": "", **locks}.items():
            (tmp_path / "infra" / "locks" / f"{name}.txt").write_text(text)
        kept = {name: text for name, text in os.environ.items() if not name.startswith("PIP_")}
        own = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "TORCH": "cpu"}
        return subprocess.run(
            ["bash", "infra/install.sh", what],
            cwd=tmp_path,
            env={**kept, **own, "PIP_FIND_LINKS": str(tmp_path / "wheels"), **env},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    return run


def entry(name: str, digest: str, version: str = "1.0") -> str:
    return f"{name}=={version} \\\n    --hash=sha256:{digest}\n"


def test_tests_get_the_triton_of_the_torch_for_gpus(install, tmp_path: Path) -> None:
    tiny, triton = (entry(name, wheel(tmp_path / "wheels", name)) for name in ("tiny", "triton"))
    torch = entry("torch", "0" * 64, "2000.0")
    for after in ("", entry("tritonlike", "0" * 64)):
        done = install("test", {"test": tiny, "cuda": torch + triton + after})
        assert done.returncode == 0, done.stderr
        assert len(list(tmp_path.glob(".venv/lib/python*/site-packages/triton-1.0*"))) == 1
        assert not list(tmp_path.glob(".venv/lib/python*/site-packages/torch*"))


def test_a_file_with_another_hash_is_refused_in_one_sentence(install, tmp_path: Path) -> None:
    digest = wheel(tmp_path / "wheels", "tiny")
    good = install("test", {"test": entry("tiny", digest)})
    assert good.returncode == 0, good.stderr
    module = tmp_path.glob(".venv/lib/python*/site-packages/tiny.py")
    next(module).unlink()
    shutil.rmtree(next(tmp_path.glob(".venv/lib/python*/site-packages/tiny-1.0.dist-info")))
    bad = install("test", {"test": entry("tiny", digest[::-1])})
    assert bad.returncode == 1
    assert bad.stderr == (
        "setup: the file of tiny==1.0 is not one of those that infra/locks name by their hashes; "
        "it was not installed (docs/concepts/security.md#packages).\n"
    )
    assert list(tmp_path.glob(".venv/lib/python*/site-packages/tiny*")) == []


def test_a_package_that_the_lock_lacks_is_refused_in_one_sentence(install, tmp_path: Path) -> None:
    digest = wheel(tmp_path / "wheels", "tiny", needs="other")
    wheel(tmp_path / "wheels", "other")
    bad = install("test", {"test": entry("tiny", digest)})
    assert bad.returncode == 1
    assert bad.stderr == (
        "setup: infra/locks have no hash of other, which is needed; it was not installed. "
        "'make lock' writes them.\n"
    )


def test_the_project_gets_what_the_locks_have_and_nothing_else(install, tmp_path: Path) -> None:
    locks = {
        "build": entry("tiny", wheel(tmp_path / "wheels", "tiny")),
        "cpu": entry("torch", "0" * 64, "2000.0+cpu"),
        "cuda": entry("torch", wheel(tmp_path / "wheels", "torch", "2000.0"), "2000.0"),
        "run": entry("other", wheel(tmp_path / "wheels", "other")),
    }
    project = (
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "sample"\nversion = "1"\ndependencies = ["other", "torch"]\n'
        "[tool.setuptools]\npy-modules = []\n[project.optional-dependencies]\nall = [%s]\n"
    )
    (tmp_path / "pyproject.toml").write_text(project % "")
    done = install("run", locks)
    assert done.returncode == 0, done.stderr
    assert "The index has no torch for CPUs alone; the one for GPUs takes 3 GB more." in done.stdout
    # There, but in no lock: an index would give any file of it.
    wheel(tmp_path / "wheels", "unlocked")
    (tmp_path / "pyproject.toml").write_text(project % '"unlocked"')
    bad = install("run", locks)
    assert bad.returncode == 1
    assert bad.stderr.endswith(
        "setup: pyproject.toml needs unlocked, which infra/locks do not have; "
        "'make lock' writes them.\n"
    )


def test_a_build_of_torch_that_is_not_there_is_refused(install, tmp_path: Path) -> None:
    digest = wheel(tmp_path / "wheels", "tiny")
    bad = install("run", {"build": entry("tiny", digest)}, TORCH="rocm")
    assert bad.returncode == 2
    assert bad.stderr == "setup: TORCH is rocm; cpu and cuda are there.\n"
