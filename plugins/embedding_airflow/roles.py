"""The platform's roles as Airflow's own: Viewer reads, User writes notes, Op and Admin order."""

from __future__ import annotations

from typing import Any

from embedding.web.tokens import ANALYST, OPERATOR, READER

AIRFLOW_ROLES = {READER: "viewer", ANALYST: "user", OPERATOR: "op"}
_ROLES = {**{theirs: ours for ours, theirs in AIRFLOW_ROLES.items()}, "admin": OPERATOR}


def role_of(user: Any) -> str:
    """The role of a user of Airflow, whichever auth manager it has; unknown roles only read.

    SimpleAuthManager's users have one role, FAB's have several with names.
    """
    several = getattr(user, "roles", None) or [getattr(user, "role", "")]
    names = {str(getattr(name, "name", name) or "").lower() for name in several}
    roles = {_ROLES[name] for name in names if name in _ROLES}
    return next((role for role in (OPERATOR, ANALYST) if role in roles), READER)
