"""The order of `yeoron --help`: commands in panels, by what a person wants to do."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command_name

PANELS = {
    "Begin": ("demo", "init", "doctor"),
    "From a file of texts": ("import", "train", "simweb"),
    "What changed": ("trends", "report", "export", "web", "mcp", "token"),
    "Sources": ("sources", "crawl"),
    "The platform": ("up", "status", "down", "live", "rotate", "invite", "database"),
    "Snapshots": ("snapshot", "evaluate"),
    "Keep, undo, erase": ("backup", "restore", "rollback", "forget", "retain"),
    "Single services and measurements": ("serve", "node", "bench"),
}
"""Panels from top to bottom, and the commands of each in the order in which they are shown."""

_ORDER = [name for names in PANELS.values() for name in names]


class OrderedGroup(TyperGroup):
    """The commands in the order of the panels; hidden ones, which are in none, come last."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of all commands."""
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))


def arrange(app: typer.Typer) -> None:
    """Put each command of `app` into its panel."""
    panel_of = {name: panel for panel, names in PANELS.items() for name in names}
    for group in app.registered_groups:
        group.rich_help_panel = panel_of[str(group.name)]
    for command in app.registered_commands:
        name = command.name or get_command_name(getattr(command.callback, "__name__", ""))
        if not command.hidden:
            command.rich_help_panel = panel_of[name]
