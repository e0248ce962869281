"""`yeoron account add|list|withdraw`: who may log in, and with which role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from embedding.commands.common import Json, errors, print_line, settings_of
from embedding.commands.tokens import print_access

if TYPE_CHECKING:
    from embedding.web.tokens import AccessTokens

NameArgument = Annotated[str, typer.Argument(help="Name that the person logs in with.")]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    group = typer.Typer(
        help="People who may log in to the trends page, Airflow and MLflow.", no_args_is_help=True
    )
    group.command("add")(add)
    group.command("list")(list_accounts)
    group.command("withdraw")(withdraw)
    app.add_typer(group, name="account")


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
    password = _accounts().make(name, role)
    print_line(f"{name} logs in with this password, which is shown this once:", to=errors)
    print_line(password)


def list_accounts(as_json: Json = False) -> None:
    """List the accounts: their role, and when they were added, last used and withdrawn.

    Example: `yeoron account list`
    """
    print_access(_accounts().list(), as_json=as_json)


def withdraw(name: NameArgument) -> None:
    """Withdraw an account. Its sessions end at once.

    Example: `yeoron account withdraw garam`
    """
    _accounts().withdraw(name)
    print_line(f"{name}: withdrawn.")


def _accounts() -> AccessTokens:
    from embedding.web.tokens import accounts

    return accounts(settings_of().page.accounts)
