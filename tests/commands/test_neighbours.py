"""Commands of packages beside the core: they come by entry points, and cost nobody else a thing."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

import pytest

from embedding.commands.panels import PANELS
from embedding.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
COMMAND = """
def register(app):
    @app.command()
    def {name}(times: int = 1) -> None:
        "Say a word."
        print("moin " * times)
"""
INSTALL = 'not installed; pip install "yeoron[all]" brings it.'


class Packages:
    """Packages on the path before all others, one entry point each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, package: str, module: str, text: str | None, *commands: str) -> None:
        about = self.folder / f"{package}-1.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        entries = "".join(f"{command} = {module}\n" for command in commands)
        (about / "entry_points.txt").write_text(f"[yeoron.commands]\n{entries}")
        if text is not None:
            (self.folder / f"{module}.py").write_text(text)


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Packages:
    paths = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    return Packages(tmp_path)


def test_each_neighbour_of_this_tree_brings_its_command() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = project["project"]["entry-points"]
    entries = groups["yeoron.commands"]
    assert set(entries) == {"bench", "demo", "simweb"}
    places = {name for names in PANELS.values() for name in names}
    assert set(entries) <= places
    folders = {path.parent.name for path in ROOT.glob("neighbours/*/__init__.py")}
    modules = {
        each for name, group in groups.items() if name[:7] == "yeoron." for each in group.values()
    }
    assert {module.partition(".")[0] for module in modules} == folders
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert {f"neighbours/{folder}" for folder in folders} <= set(wheel)


def test_a_command_of_another_package_is_shown_and_runs(own_process, packages) -> None:
    packages.add("hello", "hello_commands", COMMAND.format(name="hello"), "hello")
    shown = own_process("--help")
    assert (shown.code, shown.err) == (0, "")
    assert "Of other packages" in shown.out
    assert "Say a word." in shown.out
    done = own_process("hello", "--times", "2")
    assert (done.code, done.out, done.err) == (0, "moin moin \n", "")


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("broken", "import nothing_of_that_name", "(ModuleNotFoundError: No module named"),
        ("broken", COMMAND.format(name="other"), "registers no command of that name"),
        ("train", COMMAND.format(name="train"), "there is another of that name"),
    ],
)
def test_a_package_that_is_wrong_costs_itself_alone(
    own_process, packages, name, text, sentence
) -> None:
    packages.add("wrong", "wrong_commands", text, name)
    named = f"yeoron: command '{name}' of wrong (entry point wrong_commands) cannot be loaded "
    shown = own_process("--help")
    assert shown.code == 0
    assert shown.err.count("\n") == 1
    assert shown.err.startswith(named)
    assert sentence in shown.err
    assert "snapshot" in shown.out
    alone = own_process("snapshot", "--help")
    assert (alone.code, alone.err) == (0, "")
    if name == "train":
        assert own_process("train", "--help").code == 0
    else:
        done = own_process(name)
        assert (done.code, done.out) == (2, "")
        assert done.err == shown.err


@pytest.mark.parametrize("named", [False, True], ids=["not named", "named, but gone"])
def test_without_a_neighbour_one_sentence_says_what_to_install(
    own_process, packages, named
) -> None:
    commands = ("bench", "demo", "simweb")
    packages.add("yeoron", "yeoron_gone", None, *(commands if named else ()))
    shown = own_process("--help")
    assert (shown.code, shown.err) == (0, "")
    for command in commands:
        assert f" {command} " not in shown.out
        done = own_process(command, "--help")
        assert (done.code, done.out) == (2, "")
        assert done.err == f"yeoron: {command}: the package that has this command is {INSTALL}\n"


def test_of_two_commands_of_one_name_both_packages_are_named(own_process, packages) -> None:
    for package in ("one", "two"):
        packages.add(package, f"{package}_commands", COMMAND.format(name="hello"), "hello")
    shown = own_process("--help")
    assert shown.err.count("\n") == 1
    for package in ("one", "two"):
        assert f" of {package} (entry point {package}_commands)" in shown.err
    assert "Say a word." in shown.out
    done = own_process("hello")
    assert (done.code, done.out, done.err) == (2, "", shown.err)


def test_the_demo_without_the_simulated_web_is_one_sentence(yeoron, monkeypatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("yeoron_demo", "yeoron_sim"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("embedding.commands.common.keep_private", lambda: None)
    monkeypatch.setitem(sys.modules, "yeoron_simweb", None)
    done = yeoron("demo")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("yeoron: yeoron_simweb")
    assert done.err.endswith("is not installed; pip install 'yeoron[all]' brings it.\n")
    assert done.err.count("\n") == 1


def test_without_the_simulated_web_a_form_without_a_corpus_is_one_sentence(
    monkeypatch, tmp_path
) -> None:
    from embedding.kernel.errors import ConfigError
    from embedding_airflow.training import generated_corpus

    monkeypatch.setitem(sys.modules, "yeoron_simweb.config", None)
    with pytest.raises(ConfigError, match=r"yeoron_simweb.*is not installed; name a file, or pip"):
        generated_corpus(Settings(paths={"home": tmp_path}))
