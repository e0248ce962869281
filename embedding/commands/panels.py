"""The order of `yeoron --help`: commands in panels, by what a person wants to do."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command_name

from embedding.commands.common import errors, print_line
from embedding.commands.neighbours import neighbour_commands
from embedding.kernel.errors import ConfigError

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
