"""Commands of other packages, by entry points of the group `yeoron.commands`.

An entry point's name is that of the command; its module has `register(app)`, as each module of
`embedding.commands` has. They are looked up where the core has no command of the name asked for,
and for `--help`: any other command starts without them.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import Any

import typer
from typer.main import get_group

from embedding.kernel.errors import ConfigError
from embedding.kernel.registry import installed, whose


def neighbour_commands(
    taken: set[str], arrange: Callable[[typer.Typer], None]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Commands by name, and by name why one is left out. A package that is gone is no fault.

    taken    names of the core's own commands, which nobody else's may have
    arrange  puts each command of an app into its panel
    """
    commands: dict[str, Any] = {}
    faults: dict[str, str] = {}
    for entry in installed().select(group="yeoron.commands"):
        try:
            if entry.name in taken | set(commands):
                raise ConfigError("there is another of that name")
            commands[entry.name] = _load(entry, arrange)
        except Exception as error:  # noqa: BLE001 - whatever another package raises
            top = entry.module.partition(".")[0]
            if not (isinstance(error, ModuleNotFoundError) and error.name == top):
                faults[entry.name] = (
                    f"command {entry.name!r} of {whose(entry)} cannot be loaded "
                    f"({type(error).__name__}: {error}); repair or uninstall that package."
                )
    return commands, faults


def _load(entry: EntryPoint, arrange: Callable[[typer.Typer], None]) -> Any:
    app = typer.Typer(rich_markup_mode="markdown")
    entry.load().register(app)
    arrange(app)
    command = get_group(app).commands.get(entry.name)
    if command is None:
        raise ConfigError("its module registers no command of that name")
    return command
