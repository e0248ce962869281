#!/usr/bin/env bash
# Run the tests that need no platform with another version of Airflow, in a venv outside the tree.
# usage: infra/airflow_minor.sh 3.2.2
set -euo pipefail
version=$1
cd "$(dirname "$0")/.."
venv=${TMPDIR:-/tmp}/yeoron-airflow-$version
if [ ! -f "$venv/.installed" ]; then
  "${PYTHON:-python3}" -m venv "$venv"
  # The core of Yeoron, without its pins: those are of the Airflow that it is developed with.
  "$venv/bin/pip" install --quiet "apache-airflow==$version" httpx fastapi \
    fsspec numpy platformdirs pyarrow pydantic pydantic-settings rich scipy tenacity typer \
    hypothesis pytest pytest-asyncio pytest-timeout
  touch "$venv/.installed"
fi
"$venv/bin/airflow" version
PYTHONPATH=.:plugins:neighbours:tests "$venv/bin/python" -m pytest -q -p no:cacheprovider \
  tests/airflow/test_{provider,dags,choices,naming,windows,late_runs}.py
