"""Write docs/reference from the code: settings, commands, metrics and errors.

python infra/reference.py            write the pages
python infra/reference.py --check    exit code 1 if a page is not up to date
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import generated_files
import typer
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from embedding.cli import app
from embedding.commands import reasons
from embedding.commands.option_groups import known_names, meanings, named
from embedding.kernel import errors
from embedding.server.figures.metrics import SHOWN, all_figures
from embedding.settings import FIRST_SETTINGS, PREFIX, Settings
from embedding.sources.config import SourceConfig
from yeoron_bench.markdown import table

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
GENERATED = "<!-- Written by infra/reference.py: change the code, not this page. -->\n\n"


def cell(text: object) -> str:
    """One line of text for a cell of a table."""
    line = " ".join(str(text).split())
    line = re.sub(r"\(?(?:see )?\bdocs/([\w/-]+)\.md\)?", _link, line)
    return line.replace("|", "\\|").replace("<", "&lt;")


def _link(match: re.Match[str]) -> str:
    link = f"[{match[1].rpartition('/')[2]}](../{match[1]}.md)"
    return "(" * match[0].startswith("(") + link + ")" * match[0].endswith(")")


def sections(model: type[BaseModel], path: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """Every section of the settings, outermost first."""
    if path:
        yield path, model
    for name, field in model.model_fields.items():
        inner = section(field)
        if inner is not None:
            yield from sections(inner, f"{path}.{name}" if path else name)


def section(field: FieldInfo) -> type[BaseModel] | None:
    """The model of a field that is a section of its own."""
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


PLAIN = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Path: "path",
    SecretStr: "secret text",
}


def plain(annotation: Any) -> str:
    """A type in words."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return plain(inner[0])
    if origin is Literal:
        return ", ".join(f"`{each}`" for each in inner)
    if origin in (UnionType, Union):
        return " or ".join(plain(each) for each in inner if each is not type(None))
    if origin is dict or origin is Mapping:
        return f"table of {plain(inner[1])}"
    if origin in (tuple, list, frozenset):
        return f"list of {plain(inner[0])}"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return ", ".join(f"`{each.value}`" for each in annotation)
    name = getattr(annotation, "__name__", str(annotation))
    return PLAIN.get(annotation, f"`{name}`")


def kind_of(field: FieldInfo) -> str:
    """The type of a setting, and the bounds of a number."""
    signs = (("ge", "≥"), ("gt", ">"), ("le", "≤"), ("lt", "<"))
    bounds = [
        f"{sign} {getattr(each, name):,}"
        for each in field.metadata
        for name, sign in signs
        if isinstance(getattr(each, name, None), int | float)
    ]
    return ", ".join([plain(field.annotation), *bounds])


def default_of(field: FieldInfo) -> str:
    """The default of a setting as TOML would have it."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None:
        return "none"
    if isinstance(value, BaseModel | tuple | list | dict):
        plain = json.loads(json.dumps(value, default=_plain))
        text = json.dumps(plain, ensure_ascii=False) if plain else "none"
        text = text if len(text) <= 60 else f"{text[:57]}…"
        return f"`{text}`" if plain else text
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _plain(value: object) -> object:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else str(value)


def rows_of(model: type[BaseModel]) -> list[tuple[str, ...]]:
    """A row for each setting of a section."""
    means = meanings(model)
    return [
        (
            f"`{name}`",
            cell(kind_of(field)),
            cell(default_of(field)),
            cell(named(means.get(name, ""), _names())),
        )
        for name, field in model.model_fields.items()
        if section(field) is None and name not in getattr(model, "INTERNAL", ())
    ]


def first_rows() -> list[tuple[str, ...]]:
    """A row for each setting that most installations set, by its whole name."""
    models = dict(sections(Settings))
    rows = []
    for whole in FIRST_SETTINGS:
        path, _, name = whole.rpartition(".")
        _, *rest = next(row for row in rows_of(models[path]) if row[0] == f"`{name}`")
        rows.append((f"`{whole}`", *rest))
    return rows


def settings() -> str:
    """The page of settings."""
    page = [
        "# Settings\n\n",
        "Settings are read from `yeoron.toml`, from the file that `--settings` or ",
        f"`${PREFIX}SETTINGS` names, and from the environment. The environment wins. ",
        "`port` in `[server]` is `YEORON_SERVER__PORT` in the environment: two underscores ",
        "stand for each dot. An unknown setting is refused by name.\n",
    ]
    head = ("setting", "type", "default", "meaning")
    page += [
        "\n## Where to begin\n\n",
        f"Most installations set some of these {len(FIRST_SETTINGS)} and nothing else. ",
        "The sections after them are for experts: they list every setting.\n\n",
        table(head, first_rows()),
    ]
    for path, model in sections(Settings):
        rows = rows_of(model)
        if rows:
            page += [f"\n## [{path}]\n\n", _first(model), table(head, rows)]
    page += [
        "\n## [[source]] of sources.toml\n\n",
        "Each source is one `[[source]]`. `infra/sources.example.toml` shows every kind.\n\n",
        table(head, rows_of(SourceConfig)),
    ]
    return "".join(page)


def _first(thing: type) -> str:
    """The first paragraph of a docstring, as a paragraph."""
    text = inspect.cleandoc(thing.__doc__ or "").split("\n\n")[0]
    return f"{cell(text)}\n\n" if text else ""


def commands(command: Any, path: str) -> Iterator[str]:
    """A section for each command, its subcommands after it."""
    if getattr(command, "hidden", False):
        return
    depth = min(path.count(" ") + 2, 4)
    yield f"\n{'#' * depth} {path}\n\n{inspect.cleandoc(command.help or '')}\n"
    for kind, head in (("argument", "argument"), ("option", "option")):
        rows = [
            _parameter(each)
            for each in command.params
            if each.param_type_name == kind and not getattr(each, "hidden", False)
        ]
        rows = [row for row in rows if "--install-completion" not in row[0]]
        rows = [row for row in rows if "--show-completion" not in row[0]]
        if rows:
            yield "\n" + table((head, "default", "meaning"), rows)
    if hasattr(command, "commands"):
        for name in command.list_commands(None):
            yield from commands(command.commands[name], f"{path} {name}")


def _parameter(each: Any) -> tuple[str, ...]:
    if each.param_type_name == "argument":
        names = f"`{each.name.upper()}`" + (" …" if each.nargs == -1 else "")
    else:
        names = ", ".join(f"`{name}`" for name in (*each.opts, *each.secondary_opts))
    if each.required:
        default = "required"
    elif each.default is None or callable(each.default) or each.default in (False, (), []):
        default = ""
    else:
        default = f"`{each.default}`"
    return names, cell(default), cell(named(each.help or "", _names()))


@cache
def _names() -> dict[str, str]:
    return known_names(built_in=True)


def cli() -> str:
    """The page of commands."""
    top = typer.main.get_command(app)
    return "# Commands\n" + "".join(commands(top, "yeoron"))


def metric_families() -> Iterator[tuple[str, str, list[str], str]]:
    """Name, type, labels and help of every metric of a server with nodes, shards and groups."""
    ends = {"counter": "_total", "info": "_info"}
    for each in all_figures():
        if each.kind == SHOWN:
            continue
        kind = "gauge" if each.kind == "info" else each.kind
        name = f"yeoron_{each.name}{ends.get(each.kind, '')}"
        yield name, kind, sorted(each.labels.split()), each.text


def metrics() -> str:
    """The page of metrics."""
    rows = [
        (f"`{name}`", kind, " ".join(labels), cell(text))
        for name, kind, labels, text in metric_families()
    ]
    return (
        "# Metrics\n\nThe parameter server answers `/metrics` on loopback, at the address of its "
        "ready line, in Prometheus' text format. It gives `process_…` of its own process, too. "
        "Metrics of shards and of groups are there where there are shards and groups.\n\n"
        + table(("metric", "type", "labels", "meaning"), rows)
    )


def error_kinds() -> str:
    """The page of errors: the hierarchy, exit codes, and the names of failures that are counted."""
    kinds = [
        each
        for each in vars(errors).values()
        if isinstance(each, type) and issubclass(each, errors.YeoronError)
    ]
    rows = [
        (
            f"`{each.__name__}`",
            f"`{each.__base__.__name__}`",
            str(each.exit_code),
            _first(each).strip(),
        )
        for each in kinds
    ]
    kinds = re.search(r"\((`message`[^)]*)\)", errors.RefusedError.__doc__ or "")
    return "".join(
        [
            "# Errors\n\nA command that fails prints one sentence on standard error: what is ",
            "wrong, where, and what is accepted. Exit code 2 says that the input or the settings ",
            "are wrong; 1 that something else failed; 130 that the command was interrupted.\n\n",
            table(("error", "is a", "exit code", "meaning"), rows),
            "\n## Failures of the crawler\n\n`yeoron crawl`, `yeoron status` and the metric ",
            "`yeoron_source_faults_total{source,reason}` count each failure, each text that was ",
            "left out and each date that is a guess under one of these names.\n\n",
            table(
                ("reason", "meaning"),
                [(f"`{name}`", cell(text)) for name, text in sorted(reasons.REASONS.items())],
            ),
            "\n## Alarms of sources\n\n",
            table(
                ("event", "when"),
                [(f"`{name}`", cell(text)) for name, text in sorted(reasons.EVENTS.items())],
            ),
            "\n## Refused messages\n\nThe metric `yeoron_refused_messages_total{kind}` counts the ",
            "messages that the parameter server refused. Kinds: ",
            " ".join((kinds[1] if kinds else "").split()),
            ".\n",
        ]
    )


PAGES: dict[str, Callable[[], str]] = {
    "settings": settings,
    "commands": cli,
    "metrics": metrics,
    "errors": error_kinds,
}


def pages() -> dict[Path, str]:
    """Every page as it has to be."""
    return {FOLDER / f"{name}.md": GENERATED + make() for name, make in PAGES.items()}


if __name__ == "__main__":
    sys.exit(generated_files.main(pages()))
