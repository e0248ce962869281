"""The core names no mechanism of the laboratory (docs/adr/0043-laboratory.md): it reads what is
registered. Prose may name them: docstrings, comments, and sentences of what to install or write.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from syntax import syntax_of

ROOT = Path(__file__).resolve().parents[2]
MECHANISMS = re.compile(
    r"(?<!nc)shard|sandblaster|l_?bfgs|easgd|averaging|aggregator|all_?reduce|top_?k\b|onebit"
    r"|glove|sppmi|hogwild|fasttext|cbow|mecab|cache_bytes|server_group",
    re.IGNORECASE,
)
ALLOWED = {
    "backup/manifest.py": "how rows lay is a fact of backups that were written",
    "backup/restoring.py": "the same fact, read and said",
    "commands/services.py": "options are listed without what brings their settings, to say so",
    "commands/training.py": "options are listed without what brings their settings, to say so",
    "exchange/compression/sending.py": "on how many processes what is packed lies",
    "exchange/payload.py": "what a push holds in place of rows, and for whom",
    "exchange/placement.py": "how rows lie is a fact of checkpoints",
    "exchange/protocol.py": "the greeting names where rows lie; a push may hold a block",
    "models/config.py": "constants in the digest by which trainings are compared",
    "platform/doctor/examining.py": "examines the packages that settings ask for",
    "platform/doctor/machine.py": "examines the packages that settings ask for",
    "server/compatibility.py": "the table of what goes with what",
    "server/config.py": "a setting of the core's own that is gone is refused by its name",
    "server/figures/metrics.py": "figures by the name of their field",
    "server/figures/reports.py": "adds up figures of all processes",
    "server/recovery/checkpoint.py": "the format of checkpoints",
    "server/state.py": "the greeting names where rows lie",
    "server/status.py": "adds up figures of all processes",
    "server/rowstore.py": "the status lists all processes",
    "text/kiwi.py": "the memory of another cache",
    "training/request.py": "settings that a training passes over, or takes without their section",
    "training/resume.py": "what state folders say that another installation goes on from",
    "training/running.py": "adds up figures of all processes",
    "worker/learning/ticks.py": "what a push holds in place of rows",
    "worker/process/making.py": "the greeting names where rows lie",
}
"""By file of the core, why it names one."""


def named(tree: ast.Module) -> Iterator[str]:
    """Names, and strings that are no prose: of one word, without docstrings."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.alias(name=name):
                yield name
            case ast.keyword(arg=str(name)) | ast.ImportFrom(module=str(name)):
                yield name
            case ast.Constant(value=str(text)) if " " not in text.strip():
                yield text


def test_the_core_names_no_mechanism_of_the_laboratory() -> None:
    core = ROOT / "embedding"
    naming: dict[str, set[str]] = {}
    for path in core.rglob("*.py"):
        names = {
            name for name in named(syntax_of(path.read_text("utf-8"))) if MECHANISMS.search(name)
        }
        if names:
            naming[str(path.relative_to(core))] = names
    new = {file: names for file, names in naming.items() if file not in ALLOWED}
    assert not new, f"ask a registry or a seam (docs/adr/0043-laboratory.md): {new}"
    assert set(ALLOWED) == set(naming), "an exception that nothing needs"
