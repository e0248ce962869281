"""Go back to before a bad window, as `yeoron rollback` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from embedding_airflow.operators.base import YeoronOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from embedding.settings import Settings


class RollBack(YeoronOperator):
    """Withdraws snapshots, takes the server back, blocks a source, and starts the nodes again.

    The run's params `to`, `source`, `since` and `reason` are the command's options. A retry goes on
    where a try failed. Result: `base`, `since`, `withdrawn`, `source`, `addresses` and `listed`
    (documents to be read again), `aliases` (MLflow versions by alias), `nodes`.
    """

    def work(self, settings: Settings, context: Context) -> dict[str, Any]:
        """Plan, tell, do."""
        from embedding.rollback import plan_rollback, roll_back

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
        done = roll_back(settings, plan, tell=self.log.info)
        return {
            "base": plan.base,
            "since": plan.since.isoformat(),
            "withdrawn": list(plan.withdrawn),
            "source": plan.source,
            "addresses": done.rewound.addresses,
            "listed": done.rewound.listed,
            "aliases": done.aliases,
            "nodes": list(done.nodes),
        }
