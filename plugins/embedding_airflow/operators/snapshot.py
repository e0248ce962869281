"""Cut the window's snapshot and say so on the `snapshots` asset; find what an event asks for."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from embedding_airflow.assets import LACKS, SNAPSHOTS
from embedding_airflow.choices import window_of_id
from embedding_airflow.operators.base import YeoronOperator, window_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from embedding.exchange.client import ParameterClient
    from embedding.kernel.records import SnapshotRef, Window
    from embedding.settings import Settings

CUT_SECONDS = 600.0
"""How long one request for a snapshot takes at most; it is asked for again."""
LOG_SECONDS = 60.0
"""How often the log says for whom a window waits."""


class CutSnapshot(YeoronOperator):
    """Asks the parameter server for the snapshot of the run's window.

    The server gives the same snapshot when the window was cut before, so a retry repeats nothing.
    While the window waits for its nodes the task does, too, and its log says for whom.
    Result: `SnapshotRef.to_dict()`. XCom `lacks`, where the snapshot lacks something of its
    window: a sentence for each, which the log and the run's note say too.
    Event on the asset `snapshots` (its outlet): `id`, `window`, `parent`, `lacks`.
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
            ref = self._cut(client, window)
        finally:
            client.close()
        self.snapshot_id = ref.id
        self.log.info("Window %s: snapshot %s with %d words.", window.label, ref.id, ref.words)
        for sentence in ref.lacks:
            self.log.warning("%s", sentence)
        if ref.lacks:
            context["ti"].xcom_push(key=LACKS, value=list(ref.lacks))
        context["outlet_events"][SNAPSHOTS].extra = {
            "id": ref.id,
            "window": window.label,
            "parent": ref.parent,
            **({LACKS: list(ref.lacks)} if ref.lacks else {}),
        }
        return dict(ref.to_dict())

    def _cut(self, client: ParameterClient, window: Window) -> SnapshotRef:
        """Ask again for as long as the window waits for its nodes."""
        from embedding.kernel.errors import UnavailableError

        over = threading.Event()
        watch = threading.Thread(target=self._log_waits, args=(client, window.label, over))
        watch.start()
        try:
            while True:
                try:
                    return client.cut(window, timeout_s=CUT_SECONDS)
                except UnavailableError:
                    if window.label not in client.status()["waits"]:
                        raise
        finally:
            over.set()
            watch.join()

    def _log_waits(self, client: ParameterClient, label: str, over: threading.Event) -> None:
        """Say now and then for whom the window waits."""
        from embedding.kernel.errors import UnavailableError

        while not over.wait(LOG_SECONDS):
            with contextlib.suppress(UnavailableError):
                if sentence := client.status()["waits"].get(label):
                    self.log.warning("%s", sentence)


class ChosenSnapshots(YeoronOperator):
    """The snapshots that a run is about: those of the asset's events, else the param's.

    Airflow gathers events that arrive close together into one run, so there may be several. A
    snapshot that was amended since its event stands for itself in its newest revision.
    Result: a list of snapshot ids, oldest window first, without repetition.

    unreported  where an event or the clock began the run: also each snapshot or revision that has
                no report, and the one after it, which is compared with it. Airflow leaves events
                out while a run is under way, and the server amends snapshots without one
    """

    def __init__(self, *, unreported: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.unreported = unreported

    def work(self, settings: Settings, context: Context) -> list[str]:
        """Ids, each of which the store holds."""
        from embedding.snapshots.store import SnapshotStore

        store = SnapshotStore(settings.snapshot_store)
        events = asked_ids(context)
        held = [ref.id for ref in store.list()]
        newest = {window_of_id(name): name for name in held}
        wanted = [name if name in held else newest.get(window_of_id(name), name) for name in events]
        by_clock = not events and context["dag_run"].run_type == "scheduled"
        if self.unreported and (events or by_clock):
            wanted += _unreported(held, settings)
        if by_clock and not wanted:
            raise AirflowSkipException("Every snapshot has its report.")
        wanted = wanted or [str(context["params"].get("snapshot_id") or "latest")]
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


def _unreported(held: list[str], settings: Settings) -> list[str]:
    from embedding.trends.storage import saved

    reported = set(saved(settings.paths.trends))
    return [
        name
        for at, name in enumerate(held)
        if name not in reported or (at and held[at - 1] not in reported)
    ]


def asked_ids(context: Context) -> list[str]:
    """Snapshot ids in the events that started the run; empty when it was started by hand."""
    events = context["triggering_asset_events"].get(SNAPSHOTS, ())
    return [str(event.extra["id"]) for event in events if event.extra.get("id")]
