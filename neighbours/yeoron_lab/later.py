"""What a plug has, loaded when it is first asked for: a process loads what it uses alone."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def later(module: str, name: str) -> Any:
    """A static method that does what `name` of a module does."""

    def call(*args: Any, **named: Any) -> Any:
        return getattr(import_module(module), name)(*args, **named)

    return staticmethod(call)
