"""Regular expressions that are compiled at first use."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, cast


class _Later:
    def __init__(self, pattern: str, flags: int) -> None:
        self._given = (pattern, flags)

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(*self._given)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._compiled, name)
        setattr(self, name, method)
        return method


def later(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """As re.compile, later: for large ones in modules that many processes load and few need."""
    return cast("re.Pattern[str]", _Later(pattern, flags))
