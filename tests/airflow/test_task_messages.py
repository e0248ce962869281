"""What tasks tell a person: why one was skipped, and what a rollback would do."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from embedding.kernel.errors import InputError
from embedding_airflow.params import snapshot_params


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


def of_run(ti, conf):
    dag = SimpleNamespace(dag_id="trend_report", params=snapshot_params())
    return {"ti": ti, "dag": dag, "dag_run": SimpleNamespace(conf=conf)}


def test_a_param_that_the_dag_does_not_have_fails_at_once(home):
    """Airflow takes any: the newest snapshot would be reported instead of the named one."""
    from airflow.sdk.exceptions import AirflowFailException

    from embedding_airflow.operators.snapshot import ChosenSnapshots

    context = of_run(Pushed(), {"snapshot": "2020-02-a"})
    with pytest.raises(AirflowFailException) as refused:
        ChosenSnapshots(task_id="choose").execute(context)
    sentence = "param 'snapshot' of the DAG trend_report: snapshot_id is accepted."
    assert str(refused.value) == sentence


def test_a_skipped_notice_says_why(home):
    from airflow.sdk.exceptions import AirflowSkipException

    from embedding_airflow.operators.trends import NotifyOfReport

    ti = Pushed()
    with pytest.raises(AirflowSkipException, match="nobody is to be told"):
        NotifyOfReport(task_id="notify", snapshot_id="2020-02-a").execute(of_run(ti, {}))
    assert "set notify.webhook" in str(ti.xcoms["skipped"])
    (page,) = [str(value) for value in ti.xcoms.values() if "/yeoron/" in str(value)]
    assert page.endswith("/yeoron/window/2020-02-a")


def test_a_rollback_is_a_dry_run_until_it_is_confirmed(home, monkeypatch):
    from embedding import rollback
    from embedding_airflow.operators.rollback import RollBack

    done = []
    plan = rollback.Plan("2020-01-a", rollback.BEGINNING, ("2020-02-b",), None, "why")
    monkeypatch.setattr(rollback, "plan_rollback", lambda *_, **__: plan)

    def roll_back(settings, plan, tell):
        done.append(plan)
        rewound = SimpleNamespace(addresses=3, listed=1)
        return SimpleNamespace(plan=plan, rewound=rewound, aliases={}, nodes=())

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
