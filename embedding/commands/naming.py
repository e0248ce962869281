"""Help of commands that names what registries know, without loading them before it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from typer.core import TyperCommand


def _names() -> dict[str, str]:
    from embedding.exchange.compression.traits import COMPRESSIONS
    from embedding.models.traits import COUNT_MODELS, MODELS
    from embedding.server.policies.traits import POLICIES
    from embedding.text.tokenizers import AUTO_TOKENIZER, TOKENIZERS

    known: dict[str, Iterable[str]] = {
        "policies": POLICIES,
        "compressions": COMPRESSIONS,
        "models": (*MODELS, *COUNT_MODELS),
        "tokenizers": (*TOKENIZERS, AUTO_TOKENIZER),
    }
    return {name: ", ".join(each) for name, each in known.items()}


def named(text: str, names: Mapping[str, str] | None = None) -> str:
    """A help text with the names in place of `{policies}`, `{models}` …; None: those known now."""
    for name, known in (_names() if names is None else names).items():
        text = text.replace(f"{{{name}}}", known)
    return text


class NamingCommand(TyperCommand):
    """A command in whose options' help `{policies}`, `{models}` … stand for the names."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """As every command, with the names put in."""
        names = _names()
        for param in self.params:
            if text := getattr(param, "help", None):
                param.help = named(text, names)  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)
