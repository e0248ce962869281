"""A window that waits for a node: the task waits with it, and its log says for whom."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import world

from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import HandIn
from embedding.exchange.protocol import Push
from embedding.kernel.records import SourceProgress, WindowUnit
from embedding.server.config import ServerConfig
from embedding.server.service import running_server

pytestmark = pytest.mark.timeout(300)
AT = int(datetime(2020, 1, 1, tzinfo=UTC).timestamp())


def test_the_task_asks_again_and_its_log_says_for_whom_it_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from embedding.settings import load_settings
    from embedding_airflow.assets import SNAPSHOTS
    from embedding_airflow.operators import snapshot

    monkeypatch.setattr(snapshot, "CUT_SECONDS", 1.0)
    monkeypatch.setattr(snapshot, "LOG_SECONDS", 0.2)
    config = ServerConfig(snapshots=str(tmp_path / "store"), window=WindowUnit.MONTH, min_count=1)
    config = config.model_copy(update={"in_step": True})  # a window may have no word with a row
    with running_server(config, dim=4) as server:
        place = {
            "port": int(server.location.rsplit(":", 1)[1]),
            "http_port": int(server.http_url.rsplit(":", 1)[1]),
            "window": "month",
        }
        patient = {"connect_timeout_s": 0.5}
        path = world.write_settings(tmp_path, ports={}, server=place, exchange=patient)
        monkeypatch.setenv("YEORON_SETTINGS", str(path))
        with ParameterClient(
            server.location, node="n0", incarnation="a", config=ExchangeConfig()
        ) as node:
            clock = node.hello().clock
            progress = (SourceProgress("뉴스", 1, 1, AT + 60.0, AT, ()),)
            clock = node.push(
                Push("n0", 1, clock, incarnation="a", progress=progress, tokens=1)
            ).clock
            said: list[str] = []
            asked_again = threading.Event()
            cut = ParameterClient.cut

            def counted(client: ParameterClient, *arguments: Any, **options: Any) -> Any:
                counts.append(1)
                if len(counts) == 3 and said:
                    asked_again.set()
                return cut(client, *arguments, **options)

            counts: list[int] = []
            monkeypatch.setattr(ParameterClient, "cut", counted)

            def hand_in() -> None:
                assert asked_again.wait(200)
                push = Push("n0", 2, clock, incarnation="a", hand_ins=(HandIn(AT, 2),))
                node.push(push)

            context: dict[str, Any] = {
                "params": {"window": "2020-01", "unit": "month"},
                "dag_run": SimpleNamespace(logical_date=None, run_after=None),
                "ti": SimpleNamespace(xcom_push=lambda key, value: None),
                "outlet_events": {SNAPSHOTS: SimpleNamespace(extra={})},
            }
            task = snapshot.CutSnapshot(task_id="cut_snapshot")
            task.log.warning = lambda text, *values: said.append(text % values)
            handing = threading.Thread(target=hand_in)
            handing.start()
            result = task.work(load_settings(), context)
            handing.join()
        assert set(said) == {"window 2020-01 waits for n0 to hand in how it used words."}
        assert "lacks" not in result or not result["lacks"]
