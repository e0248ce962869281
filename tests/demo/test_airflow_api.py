"""Calls of Airflow's REST API over an Airflow that fails as the real one does."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import httpx
import pytest

from embedding.kernel.errors import PlatformError
from yeoron_demo import airflow_api
from yeoron_demo.airflow_api import AirflowApi

Answers = list[httpx.Response | httpx.HTTPError]


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answers], AirflowApi]:
    """An Airflow that gives these answers, one a try."""

    def make(answers: Answers) -> AirflowApi:
        def answer(request: httpx.Request) -> httpx.Response:
            if request.url.path == "/auth/token":
                return httpx.Response(201, json={"access_token": "t"})
            given = answers.pop(0)
            if isinstance(given, httpx.HTTPError):
                raise given
            return given

        client = partial(httpx.Client, transport=httpx.MockTransport(answer))
        monkeypatch.setattr(airflow_api.httpx, "Client", client)
        monkeypatch.setattr(airflow_api.time, "sleep", lambda _: None)
        return AirflowApi("http://airflow", "admin", "password")

    return make


MADE = httpx.Response(200, json={})
LOCKED = httpx.Response(500, json={"detail": "database is locked"})
THERE = httpx.Response(409, json={"detail": "Unique constraint violation"})
LATE = httpx.ReadTimeout("timed out")


@pytest.mark.parametrize(
    "answers", [[MADE], [LOCKED, MADE], [LATE, MADE], [LATE, THERE], [LATE, LOCKED, THERE]]
)
def test_a_run_is_started_once_also_when_an_answer_is_late_or_lost(airflow, answers):
    left = list(answers)
    airflow(left).trigger("opinion_stream", "demo__2021-01", {})
    assert left == []


def test_a_run_that_was_there_before_is_refused(airflow):
    with pytest.raises(PlatformError, match="HTTP 409"):
        airflow([THERE]).trigger("opinion_stream", "demo__2021-01", {})


def test_an_airflow_that_never_answers_is_named(airflow):
    with pytest.raises(PlatformError, match=r"does not answer POST .*dagRuns: HTTP 500"):
        airflow([LOCKED] * 4).trigger("opinion_stream", "demo__2021-01", {})
