"""Functions take few parameters and objects hold few attributes; what may have more says why."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("embedding", "plugins", "dags", "benchmarks")
PARAMETERS = 8
"""Of a function, `self` not counted."""
ATTRIBUTES = 15
"""Of an object: names that its class stores to `self`, or fields of a record."""

COMPILERS = ("bare", "kernel()", "triton.jit")
"""Compiled functions take arrays and numbers alone: numba and triton know no objects there."""
WIDE_FUNCTIONS = {
    "plugins/embedding_airflow/triggers.py __init__": "Airflow calls a trigger by its fields",
}
WIDE_CLASSES: dict[str, str] = {}
RECORDS = ("dataclass", "Config", "BaseModel", "BaseSettings", "NamedTuple")
SETTINGS = ("Config", "BaseSettings")
"""A class of settings has a field for each of its options: the reference page lists them."""
WIDE_RECORDS = {
    "embedding/exchange/protocol.py Push": "a message: one field for each part that is sent",
    "embedding/exchange/protocol.py Welcome": "a message: one field for each part that is sent",
    "embedding/kernel/records.py SnapshotData": "one field for each file of a snapshot",
    "embedding/kernel/records.py TokenBlock": "one field for each column of its Arrow table",
    "embedding/server/figures/meters.py Meters": "one counter for each metric",
    "embedding/training/request.py TrainResult": "the JSON of `yeoron train`",
    "embedding/trends/history.py HistoryPoint": "the JSON of a word in a window",
    "embedding/trends/rows.py TrendReport": "the JSON of a report",
    "embedding/trends/rows.py TrendRow": "the JSON of a word in a report",
    "embedding/web/handout/content.py Handout": "one field for each part of a page to hand on",
    "embedding/worker/learning/ticks.py Prepared": "one field for each thing made ready for a tick",
}


def nodes() -> Iterator[tuple[str, ast.AST]]:
    """Every function and class of the product, with the file it is in."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    yield f"{path.relative_to(ROOT).as_posix()} {node.name}", node


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    several = (given.vararg is not None) + (given.kwarg is not None)
    return len([name for name in names if name not in ("self", "cls")]) + several


def compiled(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(each).startswith(COMPILERS) for each in function.decorator_list)


def bases(holder: ast.ClassDef) -> list[str]:
    """What a class is made of: its bases and decorators."""
    return [ast.unparse(each) for each in (*holder.bases, *holder.decorator_list)]


def attributes(holder: ast.ClassDef) -> int:
    return len(
        {
            node.attr
            for node in ast.walk(holder)
            if isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        }
    )


def test_functions_take_few_parameters() -> None:
    wide = {
        name: parameters(node)
        for name, node in nodes()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and parameters(node) > PARAMETERS
        and not compiled(node)
    }
    assert {name: n for name, n in wide.items() if name not in WIDE_FUNCTIONS} == {}, (
        "hand in an object (a frozen dataclass of what belongs together), or say here why not"
    )
    assert set(WIDE_FUNCTIONS) <= set(wide), "take these off the list: they are narrow now"


def test_objects_hold_few_attributes() -> None:
    wide = {
        name: attributes(node)
        for name, node in nodes()
        if isinstance(node, ast.ClassDef) and attributes(node) > ATTRIBUTES
    }
    assert {name: n for name, n in wide.items() if name not in WIDE_CLASSES} == {}, (
        "split by responsibility: a class with its own state for each"
    )
    assert set(WIDE_CLASSES) <= set(wide), "take these off the list: they are narrow now"


def test_records_have_few_fields() -> None:
    wide = {
        name: len(fields)
        for name, node in nodes()
        if isinstance(node, ast.ClassDef)
        and any(base.startswith(RECORDS) for base in bases(node))
        and not any(base in SETTINGS for base in bases(node))
        and len(fields := [each for each in node.body if isinstance(each, ast.AnnAssign)])
        > ATTRIBUTES
    }
    assert {name: n for name, n in wide.items() if name not in WIDE_RECORDS} == {}, (
        "put together what belongs together, or say here why not"
    )
    assert set(WIDE_RECORDS) <= set(wide), "take these off the list: they are narrow now"
