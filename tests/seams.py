"""The seams of the house: what of `embedding` tests may import (tests/seams.txt).

A test that asks through a seam still holds when what is behind it is written again. Names beyond
them are counted, and may only become fewer (tests/architecture/test_seams.py).

python tests/seams.py    name them, with the files that import them
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

from syntax import syntax_of

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests" / "seams.txt"
OWN = ROOT / "tests" / "architecture" / "test_seams.py"
_DOTTED = re.compile(r"embedding(?:\.\w+)+")


@cache
def modules() -> set[str]:
    """Dotted names of all modules and packages of `embedding`."""
    files = (path.relative_to(ROOT).with_suffix("") for path in ROOT.glob("embedding/**/*.py"))
    return {".".join(file.parts).removesuffix(".__init__") for file in files}


def seams() -> list[re.Pattern[str]]:
    """Modules and names that tests may import; a `*` stands for one part of a dotted name."""
    lines = (line.partition("#")[0].strip() for line in LIST.read_text("utf-8").splitlines())
    return [re.compile(re.escape(line).replace(r"\*", r"\w+")) for line in lines if line]


def imported(tree: ast.AST) -> set[str]:
    """Dotted names of `embedding` in a file: imported, or patched by a text that names them.

    A text that names a module is none: it says which modules there are.
    """
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level == 0 and module.partition(".")[0] == "embedding":
                found |= {f"{module}.{each.name}" for each in node.names}
        elif isinstance(node, ast.Import):
            names = [each.name for each in node.names]
            found |= {name for name in names if name.partition(".")[0] == "embedding"}
        elif isinstance(node, ast.Constant) and _DOTTED.fullmatch(text := str(node.value)):
            found |= {text} - modules()
    return found


def within(name: str, allowed: list[re.Pattern[str]]) -> bool:
    """Whether a name is a seam, or stands in a module that is one and begins with no underscore."""
    module, _, last = name.rpartition(".")
    public = not last.startswith("_")
    return any(each.fullmatch(name) or (public and each.fullmatch(module)) for each in allowed)


@cache
def names_beyond() -> dict[str, tuple[str, ...]]:
    """Names of `embedding` that are behind no seam → files of tests that import them."""
    allowed, found = seams(), defaultdict(set)
    for path in sorted({*(ROOT / "tests").rglob("*.py")} - {OWN}):
        for name in imported(syntax_of(path.read_text(encoding="utf-8"))):
            if not within(name, allowed):
                found[name].add(str(path.relative_to(ROOT)))
    return {name: tuple(sorted(files)) for name, files in sorted(found.items())}


if __name__ == "__main__":
    for name, files in names_beyond().items():
        sys.stdout.write(f"{name} {' '.join(files)}\n")
