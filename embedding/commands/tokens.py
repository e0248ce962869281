"""`yeoron token` and `yeoron account`: which programs and which people the page answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from embedding.commands.common import Json, console, errors, print_json, print_line, settings_of

if TYPE_CHECKING:
    from embedding.web.tokens import AccessTokens

NameArgument = Annotated[
    str, typer.Argument(help="Name of the person, or of the program that uses the token.")
]
_ONCE = "It is shown this once; keep it like a password."


def register(app: typer.Typer) -> None:
    """Add these commands."""
    programs = typer.Typer(
        help="Tokens with which programs read `/api/v1` and `/feed.atom`.", no_args_is_help=True
    )
    programs.command("make")(make)
    people = typer.Typer(
        help="People who may log in to the trends page, Airflow and MLflow.", no_args_is_help=True
    )
    people.command("add")(add)
    for group, name in ((programs, "token"), (people, "account")):
        group.command("list")(list_access)
        group.command("withdraw")(withdraw)
        app.add_typer(group, name=name)


def make(name: NameArgument) -> None:
    """Make a token and print it once. It can read, and nothing else.

    Example: `yeoron token make dashboard`
    """
    from embedding.web.tokens import AccessTokens

    token = AccessTokens(settings_of().page.tokens).make(name)
    print_line(_ONCE, to=errors)
    print_line(token)


def add(
    name: NameArgument,
    role: Annotated[
        str, typer.Option(help="reader, analyst or operator; each may what the ones before may.")
    ] = "reader",
) -> None:
    """Add an account and print its password once.

    A reader reads. An analyst also writes notes, the shared list, alerts and the mailed report.
    An operator also starts DAGs, and changes runs and models.

    Example: `yeoron account add garam --role analyst`
    """
    from embedding.web.tokens import accounts

    password = accounts(settings_of().page.accounts).make(name, role)
    print_line(_ONCE, to=errors)
    print_line(password)


def list_access(context: typer.Context, as_json: Json = False) -> None:
    """List them: their role, and when they were made, last used and withdrawn.

    Examples: `yeoron token list --json` · `yeoron account list`
    """
    records = _of(context).list()
    if as_json:
        print_json([vars(record) for record in records])
        return
    from rich.markup import escape
    from rich.table import Table

    table = Table("name", "role", "made", "last used", "withdrawn")
    for record in records:
        times = (record.made, record.used, record.withdrawn)
        shown = ("–" if moment is None else f"{moment:%Y-%m-%d %H:%M} UTC" for moment in times)
        table.add_row(escape(record.name), record.role, *shown)
    console.print(table)


def withdraw(context: typer.Context, name: NameArgument) -> None:
    """Withdraw one. The next question of a program is refused; a person's sessions end.

    Examples: `yeoron token withdraw dashboard` · `yeoron account withdraw garam`
    """
    _of(context).withdraw(name)
    print_line(f"{name}: withdrawn.")


def _of(context: typer.Context) -> AccessTokens:
    from embedding.web.tokens import AccessTokens, accounts

    page = settings_of().page
    people = context.parent is not None and context.parent.info_name == "account"
    return accounts(page.accounts) if people else AccessTokens(page.tokens)
