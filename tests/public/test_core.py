"""What reads and judges snapshots runs with the packages of the core alone."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NAME = re.compile(r"[\w.-]+")
ALONE = """
import sys
allowed = set(sys.argv.pop(1).split(","))
installed = set(sys.argv.pop(1).split(","))
class Missing:
    def find_spec(self, name, path, target=None):
        if path is None and name in installed - allowed:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
sys.path.insert(0, sys.argv.pop(1))
"""
COMMAND = ALONE + "from embedding.cli import main; sys.argv[0] = 'yeoron'; main()"
PYTHON = (
    ALONE
    + """
import yeoron
store = yeoron.open(sys.argv[1])
print(len(store.windows()), len(store.moved()) > 0, len(store.stories()) >= 0)
print(store.word(store.moved()[0]["word"]), store.nearest(store.moved()[0]["word"]))
"""
)


def modules() -> tuple[set[str], set[str]]:
    """Top-level modules of the core's packages with all that they need, and of all installed."""
    todo, seen = [NAME.match(one).group().lower() for one in PROJECT["dependencies"]], set()
    while todo:
        name = todo.pop().lower().replace("_", "-")
        if name in seen:
            continue
        seen.add(name)
        try:
            needs = metadata.requires(name) or ()
        except metadata.PackageNotFoundError:
            continue
        todo += [NAME.match(one).group() for one in needs if "extra ==" not in one]
    tops, every = set(), set()
    for module, names in metadata.packages_distributions().items():
        every.add(module)
        if {name.lower().replace("_", "-") for name in names} & seen:
            tops.add(module)
    own = {"embedding", "embedding_airflow", "yeoron", "yeoron_plugin"}
    return tops | own, every


@pytest.fixture(scope="module")
def store(planted: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("store"))
    planted.make_store(folder)
    return folder


def run(program: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    allowed, every = modules()
    told = [",".join(sorted(allowed)), ",".join(sorted(every)), str(ROOT)]
    return subprocess.run(
        [sys.executable, "-c", program, *told, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


SLOW = (
    "There is no finished report of these windows with these settings, so they are compared now. "
    "`yeoron trends report --all` keeps those of all windows.\n"
)


@pytest.mark.parametrize(
    "call",
    [
        "trends stories",
        "trends moved",
        "trends born --json",
        "trends word 코로나",
        "snapshot list",
        "snapshot show",
        "export findings -o findings.csv",
        "export scores -o scores.jsonld",
        "export neighbours -o words.gexf",
    ],
)
def test_a_command_that_reads_needs_the_core_alone(call: str, store: str, tmp_path: Path) -> None:
    done = run(COMMAND, *call.split(), "--snapshots", store, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    # A slow machine is told why, beside the answer.
    assert done.stderr in ("", SLOW)
    assert done.stdout


def test_python_reads_with_the_core_alone(store: str, tmp_path: Path) -> None:
    done = run(PYTHON, store, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    windows, moved, stories = done.stdout.splitlines()[0].split()
    assert int(windows) > 1
    assert (moved, stories) == ("True", "True")


@pytest.mark.parametrize(
    ("call", "missing"),
    [
        ("train corpus.txt", "train"),
        ("crawl", "crawl"),
        ("web", "web"),
        ("up", "platform"),
        ("report", "report"),
    ],
)
def test_what_an_extra_brings_is_named(call: str, missing: str, tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("가 나 다\n" * 100, encoding="utf-8")
    done = run(COMMAND, *call.split(), cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    found = re.fullmatch(
        r"yeoron: (\S+) is not installed; pip install 'yeoron\[(\w+)\]' brings it\.\n", done.stderr
    )
    assert found, done.stderr
    every = PROJECT["optional-dependencies"]
    assert found[2] in every
    parts = re.findall(r"yeoron\[([\w,]+)\]", ",".join(every[missing]))
    assert found[2] in {missing, *",".join(parts).split(",")}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.txt"]
