"""Help of commands that says what settings mean and names what registries know, without loading
them before it is asked for.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
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


def meanings(model: type[BaseModel]) -> dict[str, str]:
    """What each setting of a section means: the string below it in the code.

    pydantic would read the code in each process that imports a section, for 0.2 s of it.
    """
    found = {}
    for kind in reversed(model.__mro__):
        if kind.__module__.startswith("embedding."):
            (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
            for field, below in pairwise(getattr(body, "body", ())):
                match field, below:
                    case (
                        ast.AnnAssign(target=ast.Name(id=name)),
                        ast.Expr(value=ast.Constant(value=str(meaning))),
                    ):
                        found[name] = " ".join(meaning.split())
    return found


def settings_meanings() -> dict[str, str]:
    """What settings mean, and their defaults, by section and name; what fields of a training's
    request mean, by name.
    """
    from embedding.settings import Settings
    from embedding.training import TrainRequest

    found: dict[str, str] = {}
    models: list[tuple[str, type[BaseModel]]] = [("", Settings), ("", TrainRequest)]
    for section, model in models:
        meaning = meanings(model)
        for name, field in model.model_fields.items():
            kind = field.annotation
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                models.append((f"{section}{name}.", kind))
                continue
            usual = "" if field.default in (None, "") else f" Default: {field.default}."
            found[f"{section}{name}"] = meaning.get(name, "") + usual
    return found


def named(text: str, names: Mapping[str, str]) -> str:
    """A help text with the names in place of `{policies}`, `{models}` …."""
    for name, known in names.items():
        text = text.replace(f"{{{name}}}", known)
    return text


class NamingCommand(TyperCommand):
    """A command in whose options' help `{policies}`, `{models}` … stand for the names."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """As every command, with the names put in."""
        names = known_names() | settings_meanings()
        for param in self.params:
            if text := getattr(param, "help", None):
                param.help = named(text, names)  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)
