"""`yeoron token make|list|withdraw`: who may read the page's answers with a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from embedding.commands.common import (
    Json,
    console,
    errors,
    print_json,
    print_line,
    settings_of,
)

if TYPE_CHECKING:
    from embedding.web.tokens import AccessToken, AccessTokens

NameArgument = Annotated[
    str, typer.Argument(help="Name of the token, such as that of the program that uses it.")
]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    group = typer.Typer(
        help="Tokens with which programs read `/api/v1` and `/feed.atom`.", no_args_is_help=True
    )
    group.command("make")(make)
    group.command("list")(list_tokens)
    group.command("withdraw")(withdraw)
    app.add_typer(group, name="token")


def make(name: NameArgument) -> None:
    """Make a token and print it once. It can read, and nothing else.

    Example: `yeoron token make dashboard`
    """
    token = _tokens().make(name)
    print_line("It is shown this once; keep it like a password.", to=errors)
    print_line(token)


def list_tokens(as_json: Json = False) -> None:
    """List the tokens: their role, and when they were made, last used and withdrawn.

    Example: `yeoron token list --json`
    """
    print_access(_tokens().list(), as_json=as_json)


def print_access(found: list[AccessToken], *, as_json: bool) -> None:
    """Print a list of tokens or of accounts."""
    if as_json:
        print_json([vars(one) for one in found])
        return
    from rich.markup import escape
    from rich.table import Table

    table = Table("name", "role", "made", "last used", "withdrawn")
    for one in found:
        times = (one.made, one.used, one.withdrawn)
        shown = ("–" if at is None else f"{at:%Y-%m-%d %H:%M} UTC" for at in times)
        table.add_row(escape(one.name), one.role, *shown)
    console.print(table)


def withdraw(name: NameArgument) -> None:
    """Withdraw a token. Its next question is refused.

    Example: `yeoron token withdraw dashboard`
    """
    _tokens().withdraw(name)
    print_line(f"{name}: withdrawn.")


def _tokens() -> AccessTokens:
    from embedding.web.tokens import AccessTokens

    return AccessTokens(settings_of().page.tokens)
