"""A configuration of which a test turns constants, which no file can set."""

from __future__ import annotations

from typing import Any, TypeVar

from embedding.kernel.config import Config

C = TypeVar("C", bound=Config)


def with_constants(kind: type[C], **values: Any) -> C:
    """A `kind` with these settings and constants."""
    constants = {name: values.pop(name) for name in kind.constants() if name in values}
    return kind(**values).model_copy(update=constants)
