"""Every regular expression of the tree takes linear time, or it is said here why it may not."""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from patterns import superlinear
from syntax import syntax_of

ROOT = Path(__file__).parents[2]
ROOTS = {"embedding": ROOT, "plugins": ROOT / "plugins", "neighbours": ROOT / "neighbours"}
CALLS = {"search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}

_OWN = "reads what this project wrote itself"
_SHORT = "of at most 200 characters"
PROVED: dict[str, str] = {
    "embedding/cli.py:_LINE": "reads the metadata of the package itself",
    "embedding/crawl/charset.py:_DECLARED": "of the first 4,096 bytes of a page",
    "embedding/crawl/jsonld.py:_TOKEN": "matches wherever it begins, and gives nothing back",
    "embedding/importing/delimited.py:_TITLE": "stops at the next mark, and gives nothing back",
    "embedding/sources/answers.py:_HINTS['author']": _SHORT,
    "embedding/sources/times.py:_THIS_YEAR": _SHORT,
    "embedding/text/mask.py:_ACCOUNTS[3][2]": "begins at no comma that follows a digit",
    "embedding/text/mask.py:_LAST_WORD": "of a run of at most 20 digits and what is between them",
    "embedding/text/normalise.py:_BREAKS": "may end wherever it repeats, with nothing after it",
    "neighbours/yeoron_simweb/grammar.py:_PARTICLE": _OWN,
    "neighbours/yeoron_simweb/grammar.py:_SLOT": _OWN,
}
"""Expressions that the check names although they are right, with the reason."""


@cache
def texts() -> dict[str, str]:
    """Every module by its path from the root."""
    files = [file for name in ROOTS for file in sorted((ROOT / name).rglob("*.py"))]
    return {str(f.relative_to(ROOT)): f.read_text(encoding="utf-8") for f in files}


@cache
def parsed(path: str) -> ast.Module:
    return syntax_of(texts()[path])


def module_of(path: str) -> ModuleType:
    root = ROOTS[path.partition("/")[0]]
    relative = (ROOT / path).relative_to(root).with_suffix("")
    return importlib.import_module(".".join(relative.parts).removesuffix(".__init__"))


def makes_patterns(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.Import) and node.names[0].name == "re" for node in ast.walk(tree)
    )


def held(module: ModuleType) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Patterns that a module holds under a name, also within its tables."""

    def within(name: str, value: Any) -> Iterator[tuple[str, re.Pattern[Any]]]:
        if isinstance(value, re.Pattern):
            yield name, value
        elif isinstance(value, dict):
            for key, each in value.items():
                yield from within(f"{name}[{key!r}]", each)
        elif isinstance(value, list | tuple | set | frozenset):
            for at, each in enumerate(value):
                yield from within(f"{name}[{at}]", each)
        elif isinstance(value, type):
            return
        elif hasattr(value, "__dataclass_fields__"):
            for key in value.__dataclass_fields__:
                yield from within(f"{name}.{key}", getattr(value, key, None))
        elif type(value).__name__ == "_Later":
            yield name, re.compile(*value._given)

    for name, value in vars(module).items():
        yield from within(name, value)


@cache
def asked(path: str) -> dict[str, set[str]]:
    """By name the attributes that a module asks of it."""
    found: dict[str, set[str]] = defaultdict(set)
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            whose = node.func.value
            known = getattr(whose, "id", None) or getattr(whose, "attr", None)
            if known and node.func.attr in CALLS:
                found[known].add(node.func.attr)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found[node.value.id].add(node.attr)
    return found


def uses(name: str, path: str) -> set[str]:
    """How a pattern under this name is asked: a name with a line before it in its own module."""
    where = [path] if name.startswith("_") else (p for p, t in texts().items() if name in t)
    return set().union(*(asked(each).get(name, set()) for each in where))


def within_functions(
    path: str, tree: ast.Module
) -> Iterator[tuple[str, re.Pattern[Any], set[str]]]:
    """Patterns that stand as text in a call of `re`."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if getattr(node.func.value, "id", None) != "re" or node.func.attr not in CALLS:
            continue
        given = node.args[0]
        if isinstance(given, ast.Constant) and isinstance(given.value, str | bytes):
            yield f"{path}:{given.value!r}", re.compile(given.value), {node.func.attr}


@cache
def patterns() -> dict[str, tuple[re.Pattern[Any], frozenset[str]]]:
    """Every pattern of the tree by where it is, with how it is asked."""
    found: dict[str, tuple[re.Pattern[Any], frozenset[str]]] = {}
    for path, text in texts().items():
        if "import re" not in text or not makes_patterns(tree := parsed(path)):
            continue
        for name, pattern, used in within_functions(path, tree):
            found[name] = pattern, frozenset(used)
        for name, pattern in held(module_of(path)):
            found[f"{path}:{name}"] = pattern, frozenset(uses(re.split(r"\W", name)[0], path))
    return found


def faults() -> dict[str, str]:
    found = {}
    for name, (pattern, used) in patterns().items():
        anywhere = not used or not used <= {"match", "fullmatch"}
        why = superlinear(pattern, anywhere=anywhere, whole="fullmatch" in used)
        if why:
            found[name] = f"{why}: {pattern.pattern!r}"
    return found


def test_every_pattern_takes_linear_time() -> None:
    found = faults()
    unknown = {name: why for name, why in found.items() if name not in PROVED}
    assert unknown == {}, "\n".join(f"{name}: {why}" for name, why in unknown.items())
    needless = set(PROVED) & set(patterns()) - set(found)
    assert not needless, "no longer named by the check: take them out of PROVED"


def test_the_check_finds_the_patterns_of_the_tree() -> None:
    known = patterns()
    assert len(known) > 120
    assert "embedding/sources/markup.py:_BREAK" in known
    assert "embedding/crawl/bylines.py:_LINE" in known


@pytest.mark.parametrize(
    "pattern",
    [
        r"<br\b[^>]*>",
        r"\s+$",
        r"(a+)+b",
        r"(a|a)*b",
        r"(a|aa)*b",
        r"a*a*b",
        r"x\s*\n\s*y",
        r"\w+@\w+",
        r"<T>(.*?)</T>",
        r"a{0,5000}b",
        r"(?:a|b)*c",
    ],
)
def test_the_check_names_what_is_not_linear(pattern: str) -> None:
    assert superlinear(re.compile(pattern))


@pytest.mark.parametrize(
    "pattern",
    [r"<br\b[^<>]*>", r"[가-힣]+", r"^\s+x", r"a{1,20}b", r"\d+", r"(?:^|,)ab*", r"[ab]+"],
)
def test_the_check_leaves_alone_what_is(pattern: str) -> None:
    assert not superlinear(re.compile(pattern))


@pytest.mark.parametrize("pattern", [r"\s+x", r"[^,]*,b"])
def test_a_pattern_that_is_only_tried_at_the_begin_has_one_begin(pattern: str) -> None:
    assert superlinear(re.compile(pattern))
    assert not superlinear(re.compile(pattern), anywhere=False)
