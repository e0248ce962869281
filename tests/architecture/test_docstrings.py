"""A public method is explained once, where it stands or in the interface that its class is for,
unless it says all in a statement or two; a field is explained under its name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from syntax import syntax_of

ROOT = Path(__file__).resolve().parents[2]
UNCHECKED = ("neighbours/yeoron_bench/",)
"""What prints tables: names say it."""
INTERFACES = ("Protocol", "ABC")
BASES = ("Part", "Companion")
"""Interfaces whose methods do nothing unless a class says otherwise."""
SHORT = 2
"""Statements of a method that its name may be enough for: a sentence would say them again."""


def classes() -> Iterator[tuple[str, ast.ClassDef]]:
    """Every class of the product, with the file it is in."""
    for room in ("embedding", "plugins", "neighbours"):
        for path in sorted((ROOT / room).rglob("*.py")):
            where = path.relative_to(ROOT).as_posix()
            for node in ast.walk(syntax_of(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef) and not where.startswith(UNCHECKED):
                    yield where, node


def methods(holder: ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in holder.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
            yield node


def is_interface(holder: ast.ClassDef) -> bool:
    return holder.name in BASES or any(
        ast.unparse(base).split("[")[0] in INTERFACES for base in holder.bases
    )


def test_public_methods_are_explained() -> None:
    found = list(classes())
    explained = {
        method.name
        for _, holder in found
        if is_interface(holder)
        for method in methods(holder)
        if ast.get_docstring(method)
    }
    bare = [
        f"{where} {holder.name}.{method.name}"
        for where, holder in found
        if not holder.name.startswith("_")
        for method in methods(holder)
        if not ast.get_docstring(method)
        and method.name not in explained
        and len(method.body) > SHORT
        and not any("overload" in ast.unparse(each) for each in method.decorator_list)
    ]
    assert bare == [], "say what it does, here or in the Protocol that declares it"


ENTRY = re.compile(r"((?:[a-z_]+, )*[a-z_]+)  +\S")
"""A line of a docstring that explains one or more fields."""


def fields(holder: ast.ClassDef) -> set[str]:
    """Fields of a dataclass, and what else an object of it is asked for by name."""
    found = {each.name for each in holder.body if isinstance(each, ast.FunctionDef)}
    for node in ast.walk(holder):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found


def test_docstrings_of_dataclasses_name_fields_that_there_are() -> None:
    wrong = [
        f"{where} {holder.name}: {name}"
        for where, holder in classes()
        if any("dataclass" in ast.unparse(each) for each in holder.decorator_list)
        for line in (ast.get_docstring(holder) or "").split("\n")[1:]
        if (entry := ENTRY.match(line))
        for name in entry[1].split(", ")
        if name not in fields(holder)
    ]
    assert wrong == [], "these fields have another name now"
