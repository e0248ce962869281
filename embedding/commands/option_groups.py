"""Options of a command in groups: a frozen dataclass a group, whose fields are the options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, get_type_hints

Command = Callable[..., None]


def grouped(function: Command) -> Command:
    """The command that typer reads: each parameter whose type is a dataclass becomes its fields.

    Fields are annotated as typer's parameters are (`Annotated[int, typer.Option(help=…)]`). The
    function is called with the groups made of what was given. Raises TypeError where two groups
    have an option of the same name.
    """
    hints = get_type_hints(function, include_extras=True)
    own = inspect.signature(function).parameters
    groups = {name: hints[name] for name in own if is_dataclass(hints[name])}
    options: dict[str, inspect.Parameter] = {}
    for name, parameter in own.items():
        found = [parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)]
        for option in _options(groups[name]) if name in groups else found:
            if option.name in options:
                raise TypeError(f"{function.__name__}: {option.name} is in two groups of options")
            options[option.name] = option

    def command(**given: Any) -> None:
        values = {name: given[name] for name in own if name not in groups}
        for name, group in groups.items():
            values[name] = group(**{field.name: given[field.name] for field in fields(group)})
        function(**values)

    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__annotations__ = {name: option.annotation for name, option in options.items()}
    command.__signature__ = inspect.Signature(list(options.values()))  # type: ignore[attr-defined]
    return command


def _options(group: type) -> list[inspect.Parameter]:
    types = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(field),
            annotation=types[field.name],
        )
        for field in fields(group)
    ]


def _default(field: Field[Any]) -> Any:
    if field.default is not MISSING:
        return field.default
    return inspect.Parameter.empty
