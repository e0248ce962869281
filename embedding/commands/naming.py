"""Help of commands that names what registries know, without loading them before it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand

if TYPE_CHECKING:
    from embedding.kernel.registry import Registry


def known_names(*, built_in: bool = False) -> dict[str, str]:
    """What stands for each name in braces; `built_in`: without what other packages add."""
    from embedding.exchange.compression.traits import COMPRESSIONS
    from embedding.models.traits import COUNT_MODELS, MODELS
    from embedding.server.policies.traits import POLICIES
    from embedding.text.tokenizers import AUTO_TOKENIZER, TOKENIZERS

    def names(registry: Registry[Any, Any]) -> tuple[str, ...]:
        return registry.built_in() if built_in else registry.names()

    known = {
        "policies": names(POLICIES),
        "compressions": names(COMPRESSIONS),
        "models": (*names(MODELS), *names(COUNT_MODELS)),
        "tokenizers": (*names(TOKENIZERS), AUTO_TOKENIZER),
    }
    return {name: ", ".join(each) for name, each in known.items()}


def named(text: str, names: Mapping[str, str]) -> str:
    """A help text with the names in place of `{policies}`, `{models}` …."""
    for name, known in names.items():
        text = text.replace(f"{{{name}}}", known)
    return text


class NamingCommand(TyperCommand):
    """A command in whose options' help `{policies}`, `{models}` … stand for the names."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """As every command, with the names put in."""
        names = known_names()
        for param in self.params:
            if text := getattr(param, "help", None):
                param.help = named(text, names)  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)
