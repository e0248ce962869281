"""`python -m benchmarks` lists the measurements; `python -m benchmarks NAME …` runs one.

Run from the root of a checkout. What `yeoron bench` measures can be run here too.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from embedding.kernel.errors import YeoronError

HERE = Path(__file__).resolve().parent
FOLDERS = {"benchmarks": HERE, "yeoron_bench": HERE.parent / "neighbours" / "yeoron_bench"}


def found() -> dict[str, tuple[str, str]]:
    """By name: the package and one line about it. A measurement is a module with a `main`."""
    names = {}
    for package, folder in FOLDERS.items():
        for path in sorted(folder.glob("[a-z]*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            if any(isinstance(each, ast.FunctionDef) and each.name == "main" for each in tree.body):
                line = (ast.get_docstring(tree) or "").splitlines()[0]
                names[path.stem] = (package, line)
    return names


def main(arguments: Sequence[str]) -> int:
    names = found()
    if not arguments or arguments[0] in ("-h", "--help"):
        for name, (_, line) in sorted(names.items()):
            print(f"{name:<14}{line}")
        return 0
    name, *rest = arguments
    if name not in names:
        print(f"benchmarks {name}: unknown; {', '.join(sorted(names))}.", file=sys.stderr)
        return 2
    try:
        return import_module(f"{names[name][0]}.{name}").main(rest) or 0
    except YeoronError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("benchmarks", "embedding", "yeoron_bench"):
            raise
        print(
            f"benchmarks {name}: {error.name} is not installed; `pip install {error.name}`.",
            file=sys.stderr,
        )
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
