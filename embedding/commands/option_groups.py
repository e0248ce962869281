"""Options that are settings (`settings_command`), or the fields of dataclasses (`grouped`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from pkgutil import resolve_name
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args, get_origin, get_type_hints

import typer
from pydantic import BaseModel
from typer.core import TyperCommand

from embedding.kernel.config import Config, field_meanings

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from embedding.kernel.registry import Registry


Command = Callable[..., None]
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_GIVEN = "yeoron.given"
_KINDS = (bool, int, float, Path)


class SettingsCommand(TyperCommand):
    """A command with options that are settings. Those are made when they are asked for: no other
    command has to import what the settings are made of.
    """

    model: ClassVar[str]
    """Where the class of the settings is: `package.module:Class`."""
    options: ClassVar[Mapping[str, str]]
    """By name of the option, where the field is: `server.min_count`."""
    usual: ClassVar[Mapping[str, str]]
    """Defaults of options for which this command has another than the setting."""
    first: ClassVar[tuple[str, ...]]
    """The options that a newcomer needs, in order; the others stand in a panel for experts."""

    _own: list[Any]
    _all: list[Any] | None = None

    @property
    def params(self) -> list[Any]:
        """Arguments and options of the command's function, and those that are settings."""
        if self._all is None:
            order = [*self.first, *(option.name for option in self._own), *self.options]
            made = _made(type(self))
            self._all = sorted([*self._own, *made], key=lambda option: order.index(option.name))
        return self._all

    @params.setter
    def params(self, own: list[Any]) -> None:
        self._own = own

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """As every command, with names in place of `{policies}`, `{models}` …."""
        names = known_names()
        for param in self.params:
            if text := getattr(param, "help", None):
                param.help = named(text, names)
        super().format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        """Call the function; what the command line says of settings is in `given_settings`."""
        named = {name: ctx.params.pop(name) for name in self.options}
        ctx.meta[_GIVEN] = {
            name: value for name, value in named.items() if value not in (None, (), [])
        }
        return super().invoke(ctx)


def settings_command(
    model: str,
    options: Mapping[str, str],
    *,
    usual: Mapping[str, str] | None = None,
    first: tuple[str, ...] = (),
) -> type[SettingsCommand]:
    """The class of a command with these options; see SettingsCommand."""
    about = {"model": model, "options": options, "usual": usual or {}, "first": first}
    return type("SettingsCommand", (SettingsCommand,), about)


def given_options(context: typer.Context) -> dict[str, Any]:
    """What the command line says of the options that are settings, by name of the option."""
    return dict(context.meta[_GIVEN])


def _made(kind: type[SettingsCommand]) -> list[Any]:
    """The options as typer makes them of a function's parameters."""
    model = resolve_name(kind.model)

    def option(name: str, path: str) -> inspect.Parameter:
        flag = f"--{name.rstrip('_').replace('_', '-')}"  # `from_` is --from
        try:
            field, meaning = field_at(model, path)
        except KeyError:
            # Its package is not installed: whoever gives it is told in a sentence what to install.
            return _option(
                name, Annotated[str | None, typer.Option(flag, hidden=True)], default=None
            )
        default = kind.usual.get(name) or default_of(field)
        about = f"{meaning} Default: {default}." if default else meaning
        panel = "For experts" if kind.first and name not in kind.first else None
        value = _kind(field.annotation)
        flag += f"/--no-{flag[2:]}" if value is bool else ""
        made = typer.Option(flag, help=about, rich_help_panel=panel)
        return _option(name, Annotated[value | None, made], default=None)

    def command(**_: Any) -> None: ...

    made = [option(name, path) for name, path in kind.options.items()]
    command.__signature__ = inspect.Signature(made)  # type: ignore[attr-defined]
    command.__annotations__ = {option.name: option.annotation for option in made}
    app = typer.Typer(add_completion=False)
    app.command()(command)
    return list(typer.main.get_command(app).params)


def _kind(annotation: Any) -> Any:
    """What typer reads for a field: the settings themselves check the value."""
    if get_origin(annotation) is tuple:
        return list[str]
    inner = [kind for kind in get_args(annotation) if kind is not NoneType]
    kinds: list[Any] = [kind for kind in (annotation, *inner) if kind in _KINDS]
    return kinds[0] if kinds else str


def field_at(model: type[BaseModel], path: str) -> tuple[FieldInfo, str]:
    """The field `section.name` of a model, and what it means; KeyError where there is none."""
    section, _, name = path.partition(".")
    field = model.model_fields[section]
    if name:
        kind: Any = field.annotation
        return field_at(kind, name)
    return field, meanings(model).get(section, "")


def default_of(field: FieldInfo) -> str:
    """The default of a field as a help says it; empty for nothing and for what is required."""
    value = field.default
    nothing = field.is_required() or value is False or value in (None, "", ())
    return "" if nothing else str(value)


def by_section(given: Mapping[str, Any], options: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """What was given, by section and name of the settings; "" for fields of no section."""
    sections: dict[str, dict[str, Any]] = {}
    for name, value in given.items():
        section, _, field = options[name].rpartition(".")
        sections.setdefault(section, {})[field] = value
    return sections


def grouped(function: Command) -> Command:
    """The command that typer reads: each parameter whose type is a dataclass becomes its fields.

    Fields are annotated as typer's parameters are (`Annotated[int, typer.Option(help=…)]`). Raises
    TypeError where two groups have an option of the same name.
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, list[str]] = {}
    options: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        own = [parameter.replace(annotation=hints[name], kind=_KEYWORD)]
        if is_dataclass(hints[name]):
            types = get_type_hints(hints[name], include_extras=True)
            own = [
                _option(field.name, types[field.name], default=field.default)
                for field in fields(hints[name])
            ]
            groups[name] = [option.name for option in own]
        for option in own:
            if option.name in options:
                raise TypeError(f"{function.__name__}: {option.name} is in two groups of options")
            options[option.name] = option

    def command(**values: Any) -> None:
        for name, names in groups.items():
            values[name] = hints[name](**{option: values.pop(option) for option in names})
        function(**values)

    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__annotations__ = {name: option.annotation for name, option in options.items()}
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
    meanings_of: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if issubclass(kind, Config) and kind is not Config:
            meanings_of |= field_meanings(inspect.getsource(kind), kind.__name__)
    return meanings_of


def named(text: str, names: Mapping[str, str]) -> str:
    """A help text with the names in place of `{policies}`, `{models}` …."""
    for name, known in names.items():
        text = text.replace(f"{{{name}}}", known)
    return text
