"""A few calls of Airflow's REST API: log in, see DAGs, start and watch runs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import httpx

from embedding.kernel.errors import PlatformError


class AirflowApi:
    """Logged in at one Airflow; every call has a timeout."""

    def __init__(self, url: str, user: str, password: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=30, trust_env=False)
        self._login = {"username": user, "password": password}
        self._token_at = 0.0

    def close(self) -> None:
        self._client.close()

    def get(self, path: str, **query: Any) -> Any:
        """GET a path under /api/v2."""
        return self._call("GET", path, params=query)

    def wait_for_dags(self, dags: Sequence[str], timeout: float = 120) -> None:
        """Wait until every DAG was parsed; PlatformError with the import error if one is not."""
        deadline = time.monotonic() + timeout
        while True:
            known = {dag["dag_id"] for dag in self.get("/dags", limit=100)["dags"]}
            if known >= set(dags):
                return
            if time.monotonic() > deadline:
                broken = self.get("/importErrors")["import_errors"]
                why = broken[0]["stack_trace"].splitlines()[-1] if broken else "not parsed yet"
                raise PlatformError(
                    f"Airflow does not know {', '.join(sorted(set(dags) - known))}: {why}."
                )
            time.sleep(1)

    def trigger(self, dag: str, run_id: str, conf: Mapping[str, Any]) -> None:
        """Start a run. `run_id` is new; a lost answer does not start it twice."""
        body = {
            "dag_run_id": run_id,
            "logical_date": datetime.now(UTC).isoformat(),
            "conf": dict(conf),
        }
        self._call("POST", f"/dags/{dag}/dagRuns", json=body)

    def runs(self, dag: str) -> list[dict[str, Any]]:
        """Every run of a DAG, oldest first."""
        answer = self.get(f"/dags/{dag}/dagRuns", limit=100, order_by="run_after")
        return list(answer["dag_runs"])

    def failed_tasks(self, dag: str, run_id: str) -> list[str]:
        answer = self.get(f"/dags/{dag}/dagRuns/{run_id}/taskInstances", limit=100)
        return [t["task_id"] for t in answer["task_instances"] if t["state"] == "failed"]

    def page_status(self, path: str, *, logged_in: bool) -> int:
        """HTTP status of a page, with or without the login."""
        headers = self._headers() if logged_in else {}
        return self._client.get(path, headers=headers, follow_redirects=False).status_code

    def _headers(self) -> dict[str, str]:
        if time.monotonic() - self._token_at > 600 or not self._token_at:
            answer = self._client.post("/auth/token", json=self._login)
            if answer.status_code not in (200, 201):
                raise PlatformError(
                    f"Airflow refused the login of {self._login['username']}: "
                    f"HTTP {answer.status_code}."
                )
            self._token = answer.json()["access_token"]
            self._token_at = time.monotonic()
        return {"Authorization": f"Bearer {self._token}"}

    def _call(self, method: str, path: str, **options: Any) -> Any:
        error: Exception | None = None
        for pause in (0.5, 1, 2, 4):
            try:
                answer = self._client.request(
                    method, f"/api/v2{path}", headers=self._headers(), **options
                )
            except httpx.HTTPError as failed:
                error = failed
                time.sleep(pause)
                continue
            if answer.is_success:
                return answer.json()
            if answer.status_code == 409 and error is not None:
                # The try before made the run, and its answer was lost.
                return {}
            if answer.status_code >= 500:
                # SQLite was locked for longer than Airflow waits.
                error = PlatformError(f"HTTP {answer.status_code}")
                time.sleep(pause)
                continue
            raise PlatformError(
                f"Airflow answered {method} {path} with HTTP {answer.status_code}: "
                f"{answer.text[:300]}"
            )
        raise PlatformError(f"Airflow does not answer {method} {path}: {error}.")
