"""A person who answers a run's question in Airflow's web application; a process of its own.

python person.py DAG first|none      prints the options that were offered, as JSON
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

import httpx

from embedding_airflow.environment import login


async def answer(dag: str, choice: str) -> list[str]:
    from airflow.api_fastapi.app import cached_app

    transport = httpx.ASGITransport(cached_app(apps="core"))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080") as web:
        user, password = login(Path(os.environ["AIRFLOW_HOME"]))
        body = {"username": user, "password": password}
        token = (await web.post("/auth/token", json=body)).json()["access_token"]
        web.headers["Authorization"] = f"Bearer {token}"
        deadline = time.monotonic() + 200
        path = f"/api/v2/dags/{dag}/dagRuns/~/hitlDetails?response_received=false"
        while time.monotonic() < deadline:
            for detail in (await web.get(path)).json()["hitl_details"]:
                ti, options = detail["task_instance"], detail["options"]
                if ti["state"] != "awaiting_input":
                    continue
                done = await web.patch(
                    f"/api/v2/dags/{dag}/dagRuns/{ti['dag_run_id']}/taskInstances/"
                    f"{ti['task_id']}/-1/hitlDetails",
                    json={
                        "chosen_options": [options[0 if choice == "first" else -1]],
                        "params_input": {},
                    },
                )
                done.raise_for_status()
                return [*options]
            await asyncio.sleep(0.3)
    raise TimeoutError("no run asked anything")


if __name__ == "__main__":
    found = asyncio.run(answer(*sys.argv[1:]))
    Path(os.environ["TEST_ANSWER"]).write_text(json.dumps(found), encoding="utf-8")
