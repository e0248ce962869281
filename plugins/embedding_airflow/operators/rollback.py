"""Go back to before a bad window, as `yeoron rollback` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from embedding_airflow.operators.base import YeoronOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from embedding.rollback import Plan
    from embedding.settings import Settings


class RollBack(YeoronOperator):
    """Withdraws snapshots, takes the server back, blocks a source, and starts the nodes again.

    The run's params `to`, `source`, `since` and `reason` are the command's options. Without
    `confirm` nothing is changed: the log says what would be, and what to confirm. A `confirm` that
    is not the snapshot to go back to fails the task. A retry goes on where a try failed, and
    does nothing where one has done it but could not say so.
    Result: `base`, `since`, `withdrawn`, `source`, and `done`; where it was done also `addresses`
    and `listed` (documents to be read again), `aliases` (MLflow versions by alias), `nodes`.
    """

    def work(self, settings: Settings, context: Context) -> dict[str, Any]:
        """Plan, tell, and do it where it is confirmed."""
        from embedding.kernel.errors import InputError
        from embedding.rollback import RolledBack, finished_rollback, plan_rollback, roll_back
        from embedding.server.recovery.rewriting import NOTHING

        given = {
            name: str(context["params"].get(name) or "") or None
            for name in ("to", "source", "since")
        }
        reason = str(context["params"].get("reason") or "")
        run = str(context.get("run_id") or "")

        def result(done: RolledBack) -> dict[str, Any]:
            return {
                **_planned(done.plan),
                "done": True,
                "addresses": done.rewound.addresses,
                "listed": done.rewound.listed,
                "aliases": done.aliases,
                "nodes": list(done.nodes),
            }

        if run and (before := finished_rollback(settings, run)) is not None:
            self.log.info("An earlier try of this run has done it.")
            return result(before)
        plan = plan_rollback(settings, **given, reason=reason, run=run)
        self.log.info(
            "Back to %s; withdrawn: %s.",
            plan.base or "nothing",
            ", ".join(plan.withdrawn) or "none",
        )
        base, confirm = plan.base or NOTHING, str(context["params"].get("confirm") or "")
        if not confirm:
            self.log.warning("A dry run: nothing was changed. To do it, confirm %s.", base)
            return {**_planned(plan), "done": False}
        if confirm != base:
            raise InputError(
                f"param confirm {confirm!r}: {base} is accepted, which is where this goes back to."
            )
        return result(roll_back(settings, plan, tell=self.log.info))


def _planned(plan: Plan) -> dict[str, Any]:
    return {
        "base": plan.base,
        "since": plan.since.isoformat(),
        "withdrawn": list(plan.withdrawn),
        "source": plan.source,
    }
