"""Which extra of the package brings a library that is not installed."""

from __future__ import annotations

import re
from importlib import metadata

_FIRST = ("web", "train", "crawl")
"""Named before others that bring the same library; the others by name."""
_LINE = re.compile(r"([\w.-]+).*extra == ['\"]([\w-]+)['\"]")


def extra_with(module: str) -> str | None:
    """The first extra that brings a module (`torch.nn`), `all` for one of a neighbour of the core
    (`yeoron_simweb.config`); None where no extra does.
    """
    name = _plain(module.partition(".")[0])
    lines = [pair for line in metadata.requires("yeoron") or () for pair in _LINE.findall(line)]
    found = [
        extra
        for library, extra in lines
        if _plain(library).removeprefix("apache_").removeprefix("python_") in (name, f"{name}_ko")
    ]
    neighbours = "all" if name.startswith("yeoron_") else None
    return min(found, key=lambda extra: (_place(extra), extra), default=neighbours)


def _place(extra: str) -> int:
    return _FIRST.index(extra) if extra in _FIRST else len(_FIRST)


def _plain(name: str) -> str:
    return name.lower().replace("-", "_").replace(".", "_")
