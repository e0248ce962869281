"""What the fields of a class mean, read off source text: nothing is imported for it."""

from __future__ import annotations

import ast
import textwrap
from itertools import pairwise


def field_meanings(source: str, name: str) -> dict[str, str]:
    """What the fields of a class in some source text mean: the string below each."""
    section = next(
        node
        for node in ast.parse(textwrap.dedent(source)).body
        if isinstance(node, ast.ClassDef) and node.name == name
    )
    meanings = {}
    for field, below in pairwise(section.body):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=field_name)),
                ast.Expr(value=ast.Constant(value=str(meaning))),
            ):
                meanings[field_name] = " ".join(meaning.split())
    return meanings
