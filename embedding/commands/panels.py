"""The order of `yeoron --help`: commands in panels, by what a person wants to do."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command_name, get_group

from embedding.commands.common import errors, print_line
from embedding.kernel.errors import ConfigError
from embedding.kernel.registry import installed, whose

PANELS = {
    "Begin": ("demo", "init", "up", "status", "trends", "report", "web"),
    "From a file of texts": ("import", "train", "simweb"),
    "Sources": ("sources", "crawl"),
    "For other programs": ("export", "mcp", "token"),
    "The platform": ("doctor", "down", "live", "account", "rotate", "invite", "database"),
    "Snapshots": ("snapshot", "evaluate"),
    "Keep, undo, erase": ("backup", "restore", "rollback", "forget", "retain"),
    "Single services and measurements": ("serve", "node", "bench"),
}
"""Panels from top to bottom, and the commands of each in the order in which they are shown.

A name without a command in the core is that of a neighbour.
"""
OTHER_PACKAGES = "Of other packages"

_ORDER = [name for names in PANELS.values() for name in names]


def neighbour_commands(
    taken: set[str], arrange: Callable[[typer.Typer], None]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Commands of other packages by name, and by name why one is left out. A package that is gone
    is no fault.

    They come by entry points of the group `yeoron.commands`: an entry point's name is that of the
    command; its module has `register(app)`, as each module of `embedding.commands` has. They are
    looked up where the core has no command of the name asked for, and for `--help`: any other
    command starts without them.

    taken    names of the core's own commands, which nobody else's may have
    arrange  puts each command of an app into its panel
    """
    commands: dict[str, Any] = {}
    faults: dict[str, str] = {}
    owners: dict[str, str] = {}
    for entry in installed().select(group="yeoron.commands"):
        try:
            if entry.name in taken | owners.keys():
                other = f", of {owners[entry.name]}" if entry.name in owners else ""
                raise ConfigError(f"there is another of that name{other}")
            commands[entry.name], owners[entry.name] = _load(entry, arrange), whose(entry)
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


class OrderedGroup(TyperGroup):
    """The commands in the order of the panels; those in none come last: hidden, or of others."""

    _faults: dict[str, str] | None = None
    """Commands of other packages that cannot be loaded, and why; None: not looked up yet."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of all commands, also of other packages."""
        for fault in self._meet_neighbours().values():
            print_line(f"yeoron: {fault}", "red", to=errors)
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command; ConfigError for one that a package has which is not installed or broken."""
        if cmd_name not in self.commands:
            fault = self._meet_neighbours().get(cmd_name)
            if cmd_name in _ORDER and cmd_name not in self.commands:
                fault = fault or (
                    f"{cmd_name}: the package that has this command is not installed; "
                    'pip install "yeoron[all]" brings it.'
                )
            if fault is not None:
                raise ConfigError(fault)
        return super().get_command(ctx, cmd_name)

    def _meet_neighbours(self) -> dict[str, str]:
        if self._faults is None:
            commands, self._faults = neighbour_commands({*self.commands}, arrange)
            self.commands.update(commands)
        return self._faults


def arrange(app: typer.Typer) -> None:
    """Put each command of `app` into its panel."""
    panel_of = {name: panel for panel, names in PANELS.items() for name in names}
    for group in app.registered_groups:
        group.rich_help_panel = panel_of.get(str(group.name), OTHER_PACKAGES)
    for command in app.registered_commands:
        name = command.name or get_command_name(getattr(command.callback, "__name__", ""))
        if not command.hidden:
            command.rich_help_panel = panel_of.get(name, OTHER_PACKAGES)
