"""One name, one meaning: classes, aliases and public constants are unique in the tree."""

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from syntax import syntax_of

ROOT = Path(__file__).parents[2]

ROOMS = ("embedding", "plugins", "neighbours")
"""Benchmarks are scripts of their own, each with its `Setting` and its `SIDES`."""
PRODUCT = (*ROOMS, "dags", "benchmarks")
SAME = {
    "SOURCES": "the registry of kinds, and the asset that DAGs of others import",
    "Table": "the tables of rows, and `yeoron.Table`, what notebooks read",
    "log": "each module's logger",
    "logger": "each module's logger",
}
"""Names that several modules may have, and why."""


REPLACED = frozenset(
    {
        *("told", "said", "settle", "settled", "settling", "surroundings", "witness", "witnessed"),
        *("testimony", "compass", "foresight", "wish", "wishes", "ways", "dealt", "deals"),
        *("tether", "rhythm", "division", "deal", "there"),
    }
)
"""Words that the glossary replaced: nothing in the code is called so any more."""
ANSWERS = {"said"}
"""Fields of `/api/v1`, which keep their names."""


EMPTY = frozenset({"found", "mine", "one", "told"})
"""Names of locals that do not say what they hold; a comprehension or a lambda may say `one`."""


def type_variable(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) in ("TypeVar", "ParamSpec")


def names(tree: ast.Module) -> Iterator[str]:
    """Classes, aliases and constants; what begins with _ is its own module's affair."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign) and not type_variable(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and not target.id.startswith("_"):
                    yield target.id


def test_a_name_has_one_meaning_in_the_whole_tree():
    found = defaultdict(set)
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            for name in names(syntax_of(path.read_text("utf-8"))):
                found[name].add(str(path.relative_to(ROOT)))
    several = {name: sorted(paths) for name, paths in found.items() if len(paths) > 1}
    new = {name: paths for name, paths in several.items() if name not in SAME}
    assert len(SAME) <= 5
    assert not new, f"a name for each meaning (docs/glossary.md): {new}"
    assert set(SAME) <= set(several), "what is unique needs no reason"


def test_the_names_of_the_glossary_are_in_the_tree():
    """What the page says stands in the code is there."""
    text = (ROOT / "docs/glossary.md").read_text("utf-8")
    code = {
        word
        for folder in ("embedding", "neighbours")
        for path in (ROOT / folder).rglob("*.py")
        for word in (path.stem, *names(syntax_of(path.read_text("utf-8"))))
    }
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| **")]
    assert len(rows) > 20
    for row in rows:
        for name in row[4].replace("`", "").split(","):
            assert name.strip() in code, f"glossary: {name.strip()} is not in the code"


def words(name: str) -> set[str]:
    """The words that a name is made of."""
    return set(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_"))


def identifiers(tree: ast.Module) -> Iterator[str]:
    """What functions, classes, parameters, variables and attributes are called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def locals_of(tree: ast.Module) -> Iterator[str]:
    """What functions assign and take, without the names of comprehensions and lambdas."""
    short = {
        id(node)
        for scope in ast.walk(tree)
        if isinstance(scope, ast.comprehension | ast.Lambda)
        for node in ast.walk(scope.target if isinstance(scope, ast.comprehension) else scope.args)
    }
    for node in ast.walk(tree):
        if id(node) in short:
            continue
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def written(
    rooms: Iterable[str], names: Callable[[ast.Module], Iterator[str]], wrong: Callable[[str], bool]
) -> set[str]:
    """Which file of these rooms has which wrong name."""
    return {
        f"{path.relative_to(ROOT)}: {name}"
        for room in rooms
        for path in (ROOT / room).rglob("*.py")
        for name in names(syntax_of(path.read_text("utf-8")))
        if wrong(name)
    }


def test_locals_say_what_they_hold():
    # The key of `yeoron doctor --json`.
    assert written(ROOMS, locals_of, EMPTY.__contains__) == {
        "embedding/platform/doctor/diagnosis.py: found"
    }


def test_nothing_is_called_by_a_word_that_the_glossary_replaced():
    def replaced(name: str) -> bool:
        return bool(words(name) & REPLACED) and name not in ANSWERS

    assert written(PRODUCT, identifiers, replaced) == set(), "docs/glossary.md has the field's word"
