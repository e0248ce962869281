"""Start the pool of nodes, or attach to the one that runs, and list what it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from embedding_airflow.operators.base import YeoronOperator
from embedding_airflow.progress import grouped

if TYPE_CHECKING:
    from airflow.sdk import Context

    from embedding.settings import Settings


class AttachPool(YeoronOperator):
    """Starts the nodes that are missing on the Dask cluster and attaches to the others.

    Each node is one Dask task under a fixed key, so a second try, a second run or a second
    Airflow finds the nodes of the first and starts nothing twice. Nodes outlive the run.
    The file's sources are published to them: those that run hear of new ones within seconds.
    Result: `nodes` (all names), `started` (those that this try had to start), `reading` (sources
    by node; none yet for nodes that were started now), `imbalance` (largest token rate of a node
    over the mean).
    """

    def work(self, settings: Settings, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """Ask the cluster."""
        from embedding.cluster import attach_pool

        state = attach_pool(settings)
        self.log.info(
            "Pool %s: %d nodes run, %d of them started now.",
            settings.cluster.pool,
            len(state.nodes),
            len(state.started),
        )
        for node, sources in state.reading.items():
            self.log.info("%s reads %s.", node, ", ".join(sources) or "nothing yet")
        return {
            "nodes": list(state.nodes),
            "started": list(state.started),
            "reading": state.reading,
            "imbalance": state.imbalance,
        }


class SourceGroups(YeoronOperator):
    """Reads sources.toml and gives the crawl sensor one mapped task per source group.

    Result: a list of `{"group": name, "sources": [names]}`.
    """

    def work(self, settings: Settings, context: Context) -> list[dict[str, Any]]:  # noqa: ARG002
        """Group the names; a wrong file fails the run with its sentence."""
        from embedding.sources.config import load_sources

        sources = load_sources(settings.paths.sources)
        groups = grouped([(source.name, source.group) for source in sources])
        self.log.info("%d sources in %d groups.", len(sources), len(groups))
        return [{"group": name, "sources": members} for name, members in groups.items()]
