"""A person who answers runs' questions in Airflow's web application; a process of its own.

python person.py DAG FOLDER first|none ...     one answer a run; the options that were offered are
written as JSON into FOLDER, 0.json and so on
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

import httpx

from embedding.settings import platform_login


async def answer(dag: str, folder: Path, choices: list[str]) -> None:
    from airflow.api_fastapi.app import cached_app

    transport = httpx.ASGITransport(cached_app(apps="core"))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080") as web:
        user, password = platform_login(Path(os.environ["AIRFLOW_HOME"]))
        body = {"username": user, "password": password}
        token = (await web.post("/auth/token", json=body)).json()["access_token"]
        web.headers["Authorization"] = f"Bearer {token}"
        for at, choice in enumerate(choices):
            offered = await _answer_one(web, dag, choice)
            note(folder / f"{at}.json", offered)


def note(path: Path, offered: list[str]) -> None:
    """Write it beside its place first: whoever finds the file finds it whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".half").write_text(json.dumps(offered), encoding="utf-8")
    path.with_suffix(".half").rename(path)


async def _answer_one(web: httpx.AsyncClient, dag: str, choice: str) -> list[str]:
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
    asyncio.run(answer(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
