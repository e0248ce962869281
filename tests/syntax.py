"""The syntax of files of this repository, for tests that look at it."""

from __future__ import annotations

import ast
import gc


def syntax_of(text: str, name: str = "<unknown>") -> ast.Module:
    """As `ast.parse`, whatever else is going on in this process.

    Python 3.11 fails where garbage that is collected meanwhile has something parsed in its turn
    (`AST constructor recursion depth mismatch`, python/cpython#106905).
    """
    gc.disable()
    try:
        return ast.parse(text, name)
    finally:
        gc.enable()
