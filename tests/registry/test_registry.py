"""What a registry refuses: names that are taken, modules that fail, traits that contradict."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint, EntryPoints, PathDistribution
from pathlib import Path

import pytest

from embedding.kernel import registry as registries
from embedding.kernel.errors import ConfigError
from embedding.kernel.registry import Need, Registry

GOOD = """
from fruits import FRUITS, FruitTraits
@FRUITS.register("{name}", FruitTraits(sweet=True))
class Fruit: ...
"""


@dataclass(frozen=True, kw_only=True)
class FruitTraits:
    sweet: bool = False
    sour: bool = False

    def contradiction(self) -> str:
        return "sweet with sour" if self.sweet and self.sour else ""


@pytest.fixture
def fruits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A registry with one built-in thing, `apple`; `add` puts others in its group."""

    def write(module: str, text: str) -> None:
        (tmp_path / f"{module}.py").write_text(text, encoding="utf-8")

    (tmp_path / "fruit_basket").mkdir()

    monkeypatch.syspath_prepend(str(tmp_path))
    found: Registry = Registry("fruit", "test.fruits", {"apple": "fruit_basket.juicy"})
    monkeypatch.setitem(sys.modules, "fruits", type(sys)("fruits"))
    sys.modules["fruits"].__dict__.update(FRUITS=found, FruitTraits=FruitTraits)
    write("fruit_basket/__init__", "")
    write("fruit_basket/juicy", GOOD.format(name="apple"))
    entries: list[EntryPoint] = []
    monkeypatch.setattr(registries, "installed", lambda: EntryPoints(entries))

    def add(name: str, text: str, module: str = "") -> None:
        module = module or f"fruit_{name}_{len(entries)}"
        write(module, text)
        entries.append(EntryPoint(name, module, "test.fruits"))

    found.add, found.write, found.entries = add, write, entries
    yield found
    for name in [each for each in sys.modules if each.startswith("fruit_")]:
        del sys.modules[name]


def test_names_load_nothing_and_traits_load_one(fruits) -> None:
    fruits.add("plum", GOOD.format(name="plum"))
    fruits.add("pear", GOOD.format(name="pear"))
    assert fruits.names() == ("apple", "pear", "plum")
    assert "plum" in fruits
    assert not any(name.startswith(("fruit_plum", "fruit_basket.")) for name in sys.modules)
    assert fruits.traits("plum").sweet
    loaded = [name for name in sys.modules if name.startswith("fruit_")]
    assert [name for name in loaded if name != "fruit_basket"] == ["fruit_plum_0"]
    assert fruits.get("apple").__name__ == "Fruit"


@pytest.mark.parametrize("ask", ["get", "traits"])
def test_an_unknown_name_is_refused_with_the_known_ones(fruits, ask: str) -> None:
    with pytest.raises(ConfigError, match=r"^fruit 'kiwi': one of apple is accepted\.$"):
        getattr(fruits, ask)("kiwi")
    with pytest.raises(ValueError, match=r"fruit 'kiwi': one of apple is accepted$"):
        fruits.check("kiwi")


def test_where_the_laboratory_is_missing_the_refusal_says_what_brings_it(fruits) -> None:
    missing: Registry = Registry("fruit", "test.fruits", {"apple": ""}, lab=True)
    with pytest.raises(ConfigError, match=r'apple is accepted; pip install "yeoron\[all\]" brings'):
        missing.get("kiwi")


def test_names_of_neighbours_stand_among_the_built_in_ones(fruits, tmp_path: Path) -> None:
    """Those of other packages come after them."""

    def entry(name: str, distribution: str) -> EntryPoint:
        about = tmp_path / f"{distribution}-1.0.dist-info"
        about.mkdir(exist_ok=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\n")
        fruits.add(name, GOOD.format(name=name))
        return fruits.entries.pop()._for(PathDistribution(about))

    # "apple" is what an installation of another version of the tree says: it is built in here.
    fruits.entries += [entry(name, "yeoron") for name in ("aaa", "apple")]
    fruits.entries.append(entry("acorn", "other"))
    assert fruits.built_in() == ("aaa", "apple")
    assert fruits.names() == ("aaa", "apple", "acorn")
    fruits._lab = True
    with pytest.raises(ConfigError, match=r"aaa, apple, acorn is accepted\.$"):
        fruits.get("kiwi")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nowhere", r"fruit 'plum' of .* cannot be loaded \(ModuleNotFoundError: .*repair"),
        ("", "its module registers no 'plum'; the decorator and the entry point"),
        (GOOD.format(name="peach"), "registers no 'plum'"),
        (
            GOOD.format(name="apple"),
            "'apple' is registered by .* and by fruit_basket.juicy: a name",
        ),
        (
            GOOD.format(name="plum").replace("sweet=True", "sweet=True, sour=True"),
            "fruit 'plum': sweet with sour; correct the traits",
        ),
        (GOOD.format(name="plum") + "raise RuntimeError('late')", "RuntimeError: late"),
    ],
)
def test_what_is_wrong_with_a_package_is_one_sentence(fruits, text: str, said: str) -> None:
    fruits.add("plum", text)
    for _ in range(2):  # nothing is half done: it is refused again
        with pytest.raises(ConfigError, match=said) as refused:
            fruits.get("plum")
        assert "\n" not in str(refused.value)
        sys.modules.pop("fruit_plum_0", None)
    assert fruits.get("apple")
    assert fruits.names() == ("apple", "plum")


@pytest.mark.parametrize("taken", ["apple", "plum"])
def test_a_name_that_two_packages_give_is_refused(fruits, taken: str) -> None:
    fruits.add("plum", GOOD.format(name="plum"))
    fruits.add(taken, GOOD.format(name=taken))
    with pytest.raises(ConfigError, match=f"'{taken}' is registered by .* and by .*uninstall"):
        fruits.names()


def test_who_lacks_a_trait_is_refused_with_those_that_have_it(fruits) -> None:
    fruits.add("lemon", GOOD.format(name="lemon").replace("sweet=True", ""))
    need = Need("jam", fruits, "sweet", "it does not set")
    need.check("apple")
    with pytest.raises(ConfigError, match=r"^fruit lemon with jam: it does not set; apple is acc"):
        need.check("lemon")
    with pytest.raises(ConfigError, match=r"with 2 jars: it does not set; .*, or no jar\.$"):
        need.check("lemon", "2 jars", ", or no jar")


def test_the_table_names_all_traits(fruits) -> None:
    from registry.tables import table_of

    assert table_of(fruits).splitlines() == [
        "| fruit | sweet | sour |",
        "| --- | --- | --- |",
        "| `apple` | yes |  |",
    ]


def test_the_documentation_shows_the_traits_that_are_declared() -> None:
    from registry.tables import MARK, PAGE, tables

    shown = PAGE.read_text(encoding="utf-8").partition(MARK)[2]
    assert shown == tables(), "run python -m tests.registry.tables"
