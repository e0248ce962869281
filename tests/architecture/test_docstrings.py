"""A public method is explained once: where it stands, or in the interface that its class is for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNCHECKED = ("embedding/bench/",)
"""What prints tables: names say it."""
INTERFACES = ("Protocol", "ABC")


def classes() -> Iterator[tuple[str, ast.ClassDef]]:
    """Every class of the product, with the file it is in."""
    for room in ("embedding", "plugins"):
        for path in sorted((ROOT / room).rglob("*.py")):
            where = path.relative_to(ROOT).as_posix()
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef) and not where.startswith(UNCHECKED):
                    yield where, node


def methods(holder: ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in holder.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
            yield node


def is_interface(holder: ast.ClassDef) -> bool:
    return any(ast.unparse(base).split("[")[0] in INTERFACES for base in holder.bases)


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
        and not any("overload" in ast.unparse(each) for each in method.decorator_list)
    ]
    assert bare == [], "say what it does, here or in the Protocol that declares it"
