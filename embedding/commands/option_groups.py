"""Options that are settings, or stand in groups (a frozen dataclass a group); help that says what
settings mean and names what registries know, which are loaded when it is asked for.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from pydantic import BaseModel
from typer.core import TyperCommand

if TYPE_CHECKING:
    from embedding.kernel.registry import Registry


Command = Callable[..., None]
_KEYWORD = inspect.Parameter.KEYWORD_ONLY


@dataclass(frozen=True)
class SettingOption:
    """An option that is a setting: its meaning and its default are those of the setting.

    field  section and name of the setting, or name of a field of a training's request; empty: none
    about  its help where the field does not say it
    flag   how it is written, where not as it is called
    least  that a number may be, where no field says it
    panel  of the help in which it stands; empty: the first
    """

    kind: Any
    field: str = ""
    about: str = ""
    flag: str = ""
    least: int | None = None
    panel: str = ""

    @property
    def parameter(self) -> Any:
        """As typer reads it; `{field}` in its help stands for what the field means."""
        flags = [self.flag] if self.flag else []
        about = self.about or f"{{{self.field}}}"
        kind = self.kind if self.kind is bool else self.kind | None
        return Annotated[
            kind,
            typer.Option(*flags, help=about, min=self.least, rich_help_panel=self.panel or None),
        ]


def by_section(
    given: Mapping[str, Any], options: Mapping[str, SettingOption]
) -> dict[str, dict[str, Any]]:
    """What was given, by section and name of the settings; "" for fields of no section."""
    sections: dict[str, dict[str, Any]] = {}
    for name, value in given.items():
        section, _, field = options[name].field.rpartition(".")
        if field:
            sections.setdefault(section, {})[field] = value
    return sections


def grouped(function: Command, settings: Mapping[str, SettingOption] | None = None) -> Command:
    """The command that typer reads: each parameter whose type is a dataclass becomes its fields,
    and the parameter `given` what the command line says of `settings`, by name.

    Fields are annotated as typer's parameters are (`Annotated[int, typer.Option(help=…)]`). Raises
    TypeError where two groups have an option of the same name.
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, list[inspect.Parameter]] = {}
    options: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        own = [parameter.replace(annotation=hints[name], kind=_KEYWORD)]
        if name == "given" and settings is not None:
            own = groups[name] = [
                _option(each, one.parameter, default=False if one.kind is bool else None)
                for each, one in settings.items()
            ]
        elif is_dataclass(hints[name]):
            types = get_type_hints(hints[name], include_extras=True)
            own = groups[name] = [
                _option(one.name, types[one.name], default=one.default)
                for one in fields(hints[name])
            ]
        for option in own:
            if option.name in options:
                raise TypeError(f"{function.__name__}: {option.name} is in two groups of options")
            options[option.name] = option

    def command(**values: Any) -> None:
        for name, group in groups.items():
            own = {option.name: values.pop(option.name) for option in group}
            if is_dataclass(hints[name]):
                values[name] = hints[name](**own)
            else:
                named = own.items()
                values[name] = {k: v for k, v in named if not (v is None or v is False or v == [])}
        function(**values)

    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__annotations__ = {name: one.annotation for name, one in options.items()}
    command.__signature__ = inspect.Signature([*options.values()])  # type: ignore[attr-defined]
    return command


def _option(name: str, annotation: Any, *, default: Any) -> inspect.Parameter:
    usual = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(name, _KEYWORD, default=usual, annotation=annotation)


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
    return {name: ", ".join(listed) for name, listed in known.items()}


def meanings(model: type[BaseModel]) -> dict[str, str]:
    """What each setting of a section means: the string below it in the code.

    pydantic would read the code in each process that imports a section, for 0.2 s of it.
    """
    meanings_of = {}
    for kind in reversed(model.__mro__):
        if kind.__module__.startswith("embedding."):
            (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
            for field, below in pairwise(getattr(body, "body", ())):
                match field, below:
                    case (
                        ast.AnnAssign(target=ast.Name(id=name)),
                        ast.Expr(value=ast.Constant(value=str(meaning))),
                    ):
                        meanings_of[name] = " ".join(meaning.split())
    return meanings_of


def settings_meanings() -> dict[str, str]:
    """What settings mean, and their defaults, by section and name; what fields of a training's
    request mean, by name.
    """
    from embedding.settings import Settings
    from embedding.training import TrainRequest

    meanings_of: dict[str, str] = {}
    models: list[tuple[str, type[BaseModel]]] = [("", Settings), ("", TrainRequest)]
    for section, model in models:
        meaning = meanings(model)
        for name, field in model.model_fields.items():
            kind = field.annotation
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                models.append((f"{section}{name}.", kind))
                continue
            usual = "" if field.default in (None, "") else f" Default: {field.default}."
            meanings_of[f"{section}{name}"] = meaning.get(name, "") + usual
    return meanings_of


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
