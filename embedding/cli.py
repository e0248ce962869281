"""The command `yeoron`: one entry, a file for each group of commands in `embedding.commands`."""

from __future__ import annotations

import atexit
import gc
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer

from embedding import __version__
from embedding.commands import (
    beginning,
    exporting,
    importing,
    keeping,
    live,
    operate,
    services,
    snapshots,
    sources,
    tokens,
    training,
    trends,
)
from embedding.commands.common import errors, print_line, use_settings_file
from embedding.commands.panels import OrderedGroup, arrange
from embedding.kernel.errors import ConfigError, YeoronError
from embedding.kernel.private import leave_no_core

_FIRST = ("web", "train", "crawl")
"""Named before others that bring the same library; the others by name."""
_LINE = re.compile(r"([\w.-]+).*extra == ['\"]([\w-]+)['\"]")


def extra_with(module: str) -> str | None:
    """The first extra that brings a module (`torch.nn`), `all` for one of a neighbour of the core
    (`yeoron_simweb.config`); None where no extra does.
    """
    name = _plain(module.partition(".")[0])
    lines = [pair for line in metadata.requires("yeoron") or () for pair in _LINE.findall(line)]
    extras = [
        extra
        for library, extra in lines
        if _plain(library).removeprefix("apache_").removeprefix("python_") in (name, f"{name}_ko")
    ]
    neighbours = "all" if name.startswith("yeoron_") else None
    first = (extra for extra in (*_FIRST, *sorted(extras)) if extra in extras)
    return next(first, neighbours)


def _plain(name: str) -> str:
    return name.lower().replace("-", "_").replace(".", "_")


# typer may bring a click of its own, so the installed one's errors are not the ones to catch.
_MISUSE: Any = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)
_PYDANTIC = re.compile(r"Value error, |Input (?=should be)|, unable to parse .*")
"""What a user has no use for in pydantic's words about an option, as typer gives them."""

app = typer.Typer(
    name="yeoron",
    cls=OrderedGroup,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="**Yeoron** (여론): see public opinion move in text.",
)

GC_THRESHOLD = 250_000
"""Objects made between two looks for garbage: imports make hundreds of thousands, and none."""

_REMOVED = {
    "--trainer": "leave it out, and write --device cuda --sync hogwild to train on a GPU",
    "--directions": "leave it out: 16 principal directions of a message's rows are sent",
}
"""Options that are gone → what to write instead."""

for _group in (
    beginning,
    operate,
    services,
    live,
    sources,
    training,
    snapshots,
    trends,
    exporting,
    tokens,
    importing,
    keeping,
):
    _group.register(app)
arrange(app)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"yeoron {__version__}")
        raise typer.Exit


@app.callback()
def options(
    settings: Annotated[
        Path | None,
        typer.Option(
            "--settings", help="TOML settings file (default: $YEORON_SETTINGS, yeoron.toml)."
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of every command."""
    del version
    use_settings_file(settings)


def main() -> None:
    """Run a command; an expected error is one sentence on stderr and its exit code."""
    leave_no_core()
    gc.set_threshold(GC_THRESHOLD, 10, 10)
    # What is there at the end ends with the process: looking through it would take a second.
    atexit.register(gc.freeze)
    try:
        code = app(standalone_mode=False)
    except YeoronError as error:
        print_line(f"yeoron: {error}", "red", to=errors)
        sys.exit(error.exit_code)
    except _MISUSE as error:
        old = getattr(error, "option_name", "")
        if old in _REMOVED:
            print_line(f"yeoron: {old} is no option any more; {_REMOVED[old]}.", "red", to=errors)
        else:
            error.message = _PYDANTIC.sub("", error.message)
            error.show()
        sys.exit(error.exit_code)
    except ModuleNotFoundError as error:
        extra = extra_with(error.name or "")
        if extra is None:
            raise
        sentence = (
            f"yeoron: {error.name} is not installed; pip install 'yeoron[{extra}]' brings it."
        )
        print_line(sentence, "red", to=errors)
        sys.exit(ConfigError.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        errors.print("yeoron: interrupted.")
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
