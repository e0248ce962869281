"""What tasks tell a person: in the log, in XComs, and by a notice when a run is late."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from embedding.kernel.errors import InputError


class Pushed:
    """A task instance that keeps what is pushed."""

    def __init__(self) -> None:
        self.xcoms: dict[str, object] = {}

    def xcom_push(self, key: str, value: object) -> None:
        self.xcoms[key] = value


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("YEORON_PATHS__HOME", str(tmp_path))
    return tmp_path


def test_a_skipped_notice_says_why(home):
    from airflow.sdk.exceptions import AirflowSkipException

    from embedding_airflow.operators.trends import NotifyOfReport

    ti = Pushed()
    with pytest.raises(AirflowSkipException, match="nobody is to be told"):
        NotifyOfReport(task_id="notify", snapshot_id="2020-02-a").execute({"ti": ti})
    assert "set notify.webhook" in str(ti.xcoms["skipped"])
    (page,) = [str(value) for value in ti.xcoms.values() if "/yeoron/" in str(value)]
    assert page.endswith("/yeoron/window/2020-02-a")


async def test_a_late_run_is_told_of(home, monkeypatch, caplog):
    from embedding.trends import delivery
    from embedding_airflow.deadlines import tell_of_late_run

    sent = []
    monkeypatch.setattr(delivery, "deliver", lambda notice, *_: sent.append(notice.subject))
    context = {"dag_run": {"dag_id": "opinion_stream", "dag_run_id": "daily__2020-02-03"}}
    with caplog.at_level(logging.WARNING, "embedding_airflow.deadlines"):
        await tell_of_late_run(26.0, context)
    assert sent == []
    sentence = "opinion_stream daily__2020-02-03 has not ended within 26 hours."
    assert sentence in caplog.text
    monkeypatch.setenv("YEORON_NOTIFY__WEBHOOK", "https://hooks.example.org/x")
    await tell_of_late_run(26.0, context)
    assert sent == [sentence]


def test_a_rollback_is_a_dry_run_until_it_is_confirmed(home, monkeypatch):
    from embedding import rollback
    from embedding_airflow.operators.rollback import RollBack

    done = []
    plan = rollback.Plan("2020-01-a", rollback.BEGINNING, ("2020-02-b",), None, "why")
    monkeypatch.setattr(rollback, "plan_rollback", lambda *_, **__: plan)

    def roll_back(settings, plan, tell):
        done.append(plan)
        rewound = SimpleNamespace(addresses=3, listed=1)
        return SimpleNamespace(rewound=rewound, aliases={}, nodes=())

    monkeypatch.setattr(rollback, "roll_back", roll_back)

    def work(confirm):
        params = {"to": "2020-01-a", "reason": "why", "confirm": confirm}
        return RollBack(task_id="roll_back").work(None, {"params": params})

    for empty in (None, ""):
        assert work(empty)["done"] is False
    with pytest.raises(InputError, match=r"'nothing': 2020-01-a is accepted"):
        work("nothing")
    assert done == []
    assert work("2020-01-a")["done"] is True
    assert done == [plan]
