"""Which extra of the package brings a library that is not installed."""

from __future__ import annotations

import re
from collections import Counter
from importlib import metadata

_LINE = re.compile(r"([\w.-]+).*extra == ['\"]([\w-]+)['\"]")


def extra_with(module: str) -> str | None:
    """The smallest extra that brings a module (`torch.nn`); None where no extra does."""
    name = _plain(module.partition(".")[0])
    lines = [pair for line in metadata.requires("yeoron") or () for pair in _LINE.findall(line)]
    sizes = Counter(extra for _, extra in lines)
    found = [
        extra
        for library, extra in lines
        if _plain(library).removeprefix("apache_").removeprefix("python_") in (name, f"{name}_ko")
    ]
    return min(found, key=lambda extra: (sizes[extra], extra), default=None)


def _plain(name: str) -> str:
    return name.lower().replace("-", "_").replace(".", "_")
