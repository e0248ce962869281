"""Go back to before a bad window, as `yeoron rollback` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from embedding_airflow.operators.base import YeoronOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from embedding.settings import Settings


class RollBack(YeoronOperator):
    """Withdraws snapshots, takes the server back, blocks a source, and starts the nodes again.

    The run's params `to`, `source`, `since` and `reason` are the command's options. Without
    `confirm` nothing is changed: the log says what would be, and what to confirm. A `confirm` that
    is not the snapshot to go back to fails the task. A retry goes on where a try failed.
    Result: `base`, `since`, `withdrawn`, `source`, and `done`; where it was done also `addresses`
    and `listed` (documents to be read again), `aliases` (MLflow versions by alias), `nodes`.
    """

    def work(self, settings: Settings, context: Context) -> dict[str, Any]:
        """Plan, tell, and do it where it is confirmed."""
        from embedding.kernel.errors import InputError
        from embedding.rollback import plan_rollback, roll_back
        from embedding.server.recovery.seeding import NOTHING

        given = {
            name: str(context["params"].get(name) or "") or None
            for name in ("to", "source", "since")
        }
        reason = str(context["params"].get("reason") or "")
        plan = plan_rollback(settings, **given, reason=reason)
        self.log.info(
            "Back to %s; withdrawn: %s.",
            plan.base or "nothing",
            ", ".join(plan.withdrawn) or "none",
        )
        planned = {
            "base": plan.base,
            "since": plan.since.isoformat(),
            "withdrawn": list(plan.withdrawn),
            "source": plan.source,
        }
        base, confirm = plan.base or NOTHING, str(context["params"].get("confirm") or "")
        if not confirm:
            self.log.warning("A dry run: nothing was changed. To do it, confirm %s.", base)
            return {**planned, "done": False}
        if confirm != base:
            raise InputError(
                f"param confirm {confirm!r}: {base} is accepted, which is where this goes back to."
            )
        done = roll_back(settings, plan, tell=self.log.info)
        return {
            **planned,
            "done": True,
            "addresses": done.rewound.addresses,
            "listed": done.rewound.listed,
            "aliases": done.aliases,
            "nodes": list(done.nodes),
        }
