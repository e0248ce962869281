"""The image is built and the compose file is run, for real."""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from containers import (
    ROOT,
    USER,
    Composed,
    database_image,
    network_namespace,
    platform_image,
    run_once,
)
from waiting import until
from yeoron_simweb.config import SimwebConfig
from yeoron_simweb.corpus import write_corpus
from yeoron_simweb.resolve import resolve_corpus

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

logger = logging.getLogger(__name__)

PASSWORD = "PASSWORD-OF-THE-TEST"
WINDOWS = ("2021-01", "2021-02")
LAST = date(2021, 2, 28)
PAGE_SECONDS = 300
"""In which the page is there after the first start, as the operator's guide says."""
TRENDS_SECONDS = 1800
SOURCES = """
[[source]]
name = "archive"
kind = "replayed"
path = "/etc/yeoron/posts.jsonl"
group = "archive"
language = "ko"
"""
MORE = {
    "services": {
        "platform": {
            "environment": {
                "YEORON_SERVER__WINDOW": "month",
                # One file without authors: no word of it has enough of them else.
                "YEORON_TEXT__UNKNOWN_AUTHORS": "each",
                "YEORON_CLUSTER__NODES": "1",
                "YEORON_DATABASE__AIRFLOW_TASKS": "4",
            },
            "volumes": ["./posts.jsonl:/etc/yeoron/posts.jsonl:ro"],
        }
    }
}
LOGGED_IN = """
import json, time
from yeoron_demo.airflow_api import AirflowApi
from yeoron_demo.summary import reports
from yeoron_demo.watch import EVALUATE, STREAM, TREND
from embedding.settings import load_settings, platform_login
settings = load_settings()
airflow = AirflowApi(settings.airflow_url, *platform_login(settings.paths.airflow))
"""
PAGE = """
print(json.dumps([airflow.page_status("/yeoron/", logged_in=given) for given in (True, False)]))
"""
TRENDS = """
airflow.wait_for_dags((STREAM, EVALUATE, TREND))
for window in {windows}:
    asked = {{"window": window, "unit": "month", "idle_after_s": 15, "poll_s": 1}}
    airflow.trigger(STREAM, f"test__{{window}}", asked)
deadline = time.monotonic() + {seconds}
while len(reports(settings)) < len({windows}) and time.monotonic() < deadline:
    time.sleep(1)
states = {{dag: [run["state"] for run in airflow.runs(dag)] for dag in (STREAM, EVALUATE, TREND)}}
page = airflow.page_status("/yeoron/api/v1/report", logged_in=True)
print(json.dumps({{"reports": len(reports(settings)), "page": page, "runs": states}}))
"""


@pytest.fixture(scope="module")
def image() -> str:
    return platform_image()


def test_the_image_is_nobody_special_with_a_read_only_root_and_no_compiler(image: str) -> None:
    done = run_once(
        image,
        "id; for tool in gcc cc g++ make ld as; do command -v $tool; done; touch /opt/x; "
        "ls -ld /var/lib/yeoron; fc-list :lang=ko | wc -l; chromium --version; yeoron --help",
    )
    assert done.returncode == 0, done.stderr
    who, home, fonts, browser, *rest = done.stdout.splitlines()
    assert who == f"uid={USER}(yeoron) gid={USER}(yeoron) groups={USER}(yeoron)"
    assert home.startswith("drwx------")
    assert "yeoron yeoron" in home
    assert int(fonts) > 0
    assert browser.startswith("Chromium")
    assert "invite" in "".join(rest)
    assert "/opt/x': Read-only file system" in done.stderr


def test_every_module_of_the_program_is_in_the_image(image: str) -> None:
    folders = ("embedding", "plugins", "neighbours", "dags")
    here = {
        str(file.relative_to(ROOT))
        for folder in folders
        for file in (ROOT / folder).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    done = run_once(
        image, f"cd /opt/yeoron && find {' '.join(folders)} -type f -not -path '*/__pycache__/*'"
    )
    assert set(done.stdout.splitlines()) == here


@pytest.fixture(scope="module")
def composed(image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Composed]:
    if shutil.which("podman-compose") is None:
        pytest.skip("podman-compose is not installed")
    if os.geteuid() != 0:
        pytest.skip("needs root, for a network of its own")
    folder = tmp_path_factory.mktemp("compose")
    write_files(folder)
    images = {"YEORON_IMAGE": image, "YEORON_DATABASE_IMAGE": database_image()}
    with network_namespace() as network:
        running = Composed(folder, images, network)
        try:
            yield running
        finally:
            running.compose("down", "-v")


def write_files(folder: Path) -> None:
    """What its first lines ask for, beside the compose file, and an archive to read."""
    shutil.copy(ROOT / "infra" / "compose.yaml", folder)
    secrets = folder / "secrets"
    secrets.mkdir()
    for name, text in (
        ("database-password", PASSWORD),
        ("passfile", f"127.0.0.1:5432:yeoron:yeoron:{PASSWORD}"),
    ):
        file = secrets / name
        file.write_text(f"{text}\n", encoding="utf-8")
        file.chmod(0o600)
    os.chown(secrets / "passfile", USER, USER)
    (folder / "sources.toml").write_text(SOURCES, encoding="utf-8")
    (folder / "more.yaml").write_text(yaml.safe_dump(MORE), encoding="utf-8")
    posts = folder / "posts.jsonl"
    chosen = SimwebConfig(corpus=Path("generated"), last_day=LAST)
    write_corpus(resolve_corpus(chosen), posts)
    posts.chmod(0o644)


def test_the_compose_file_brings_the_platform_to_a_page_of_trends(composed: Composed) -> None:
    began = time.monotonic()
    composed.compose("up", "-d")
    composed.wait_healthy("database", 60)
    composed.wait_healthy("platform", PAGE_SECONDS)
    pages = until(lambda: said(composed, PAGE), "no page", PAGE_SECONDS)
    seconds = time.monotonic() - began
    logger.info("page after %.0f s", seconds)
    assert pages[0] == 200
    assert pages[1] in {302, 303, 307, 401, 403}
    assert seconds <= PAGE_SECONDS
    found = said(composed, TRENDS.format(windows=WINDOWS, seconds=TRENDS_SECONDS))
    assert found is not None
    assert (found["reports"], found["page"]) == (len(WINDOWS), 200), found
    logger.info("page after %.0f s, trends after %.0f s", seconds, time.monotonic() - began)


def said(composed: Composed, script: str) -> Any:
    """What a script printed, as JSON; None where it failed, as while Airflow starts."""
    done = composed.python(LOGGED_IN + script)
    return json.loads(done.stdout) if done.returncode == 0 else None


def test_only_loopback_is_listened_on_and_no_secret_is_shown(composed: Composed) -> None:
    assert {one.rpartition(":")[0] for one in composed.listening()} <= {
        "127.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
    }
    assert PASSWORD not in composed.inspected()
    assert PASSWORD not in composed.logs("platform") + composed.logs("database")


def test_what_was_learnt_is_there_after_the_containers_were_removed(composed: Composed) -> None:
    composed.compose("down")
    composed.compose("up", "-d")
    composed.wait_healthy("platform", PAGE_SECONDS)
    kept = said(composed, "print(json.dumps(len(reports(settings))))")
    assert kept == len(WINDOWS)
