"""Cut the window's snapshot and say so on the `snapshots` asset; find what an event asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from embedding_airflow.assets import SNAPSHOTS
from embedding_airflow.operators.base import YeoronOperator, window_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from embedding.settings import Settings


class CutSnapshot(YeoronOperator):
    """Asks the parameter server for the snapshot of the run's window.

    The server gives the same snapshot when the window was cut before, so a retry repeats nothing.
    Result: `SnapshotRef.to_dict()`. Event on the asset `snapshots` (its outlet): `id`, `window`.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.snapshot_id: str | None = None

    def work(self, settings: Settings, context: Context) -> dict[str, Any]:
        """Cut; the connection is closed whatever happens."""
        from embedding.exchange.client import ParameterClient

        window = window_of(context, settings)
        client = ParameterClient(
            settings.server_location,
            node="airflow",
            config=settings.line(operator=True),
        )
        try:
            ref = client.cut(window)
        finally:
            client.close()
        self.snapshot_id = ref.id
        self.log.info("Window %s: snapshot %s with %d words.", window.label, ref.id, ref.words)
        context["outlet_events"][SNAPSHOTS].extra = {
            "id": ref.id,
            "window": window.label,
            "parent": ref.parent,
        }
        return dict(ref.to_dict())


class ChosenSnapshots(YeoronOperator):
    """The snapshots that a run is about: those of the asset's events, else the param's.

    Airflow gathers events that arrive close together into one run, so there may be several.
    Result: a list of snapshot ids, oldest window first, without repetition.
    """

    def work(self, settings: Settings, context: Context) -> list[str]:
        """Ids, each of which the store holds."""
        from embedding.snapshots.store import SnapshotStore

        store = SnapshotStore(settings.snapshot_store)
        wanted = asked_ids(context) or [str(context["params"].get("snapshot_id") or "latest")]
        held = [ref.id for ref in store.list()]
        if "latest" in wanted:
            if not held:
                raise AirflowFailException(
                    f"{settings.snapshot_store}: no snapshot yet; run opinion_stream first."
                )
            wanted = [held[-1] if name == "latest" else name for name in wanted]
        gone = [name for name in wanted if name not in held]
        for name in gone:
            self.log.warning("Snapshot %s: not in %s any more.", name, settings.snapshot_store)
        chosen = [name for name in held if name in wanted]
        if not chosen:
            raise AirflowFailException(
                f"snapshot {', '.join(gone)}: not in {settings.snapshot_store}; "
                "`yeoron snapshot list` shows what is there."
            )
        return chosen


def asked_ids(context: Context) -> list[str]:
    """Snapshot ids in the events that started the run; empty when it was started by hand."""
    events = context["triggering_asset_events"].get(SNAPSHOTS, ())
    return [str(event.extra["id"]) for event in events if event.extra.get("id")]
