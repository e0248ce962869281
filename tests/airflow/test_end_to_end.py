"""From a page on the web to the trends page, through every room; and no text stays behind.

A simulated web plays documents of two months, one of them with a sentence and personal data that
occur nowhere else. `opinion_stream`, `evaluate_snapshot` and `trend_report` run for each month, the
page is read, and then every byte that the run left on the disk is searched.
"""

from __future__ import annotations

import base64
import gzip
import json
import lzma
import random
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import world

from waiting import until

SENTENCE = "푸른고래가 일곱번째 우물에서 은빛열쇠를 삼켰다고 전해진다"
PIECES = [SENTENCE, "은빛열쇠를 삼켰다고", "010-4821-7733", "gorae.unique@example.org"]
MONTHS = ("2020-01", "2020-02")
MOMENT = iter(datetime(2022, 1, 1, tzinfo=UTC) + timedelta(minutes=i) for i in range(1000))
PARTS = ("politics", "society", "euckr", "comments")
IDLE = 10
"""Seconds of silence after which a source has ended: on a busy machine a crawler may pause."""
TOPICS = (
    "시장 상인 가게 손님 물건 가격 장사 매출 골목 거리",
    "학교 학생 교사 수업 교실 시험 공부 숙제 방학 급식",
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.filterwarnings("ignore:(?s).*Port 8787 is already in use"),
]


def documents() -> list[dict[str, object]]:
    """Two months of two topics; the planted document lies in the second month."""
    rng = random.Random(5)
    lines: list[dict[str, object]] = []
    for i in range(160):
        when = datetime(2020, 1, 1, tzinfo=UTC) + i * timedelta(days=60) / 160
        words = TOPICS[i % 2].split()
        text = ". ".join(" ".join(rng.choices(words, k=9)) for _ in range(5))
        lines.append(
            {
                "date": when.isoformat(),
                "title": f"{rng.choice(words)} 이야기 {i}",
                "text": text + ".",
                "part": PARTS[(i // 2) % len(PARTS)],
            }
        )
    planted = {
        "date": "2020-02-10T09:00:00+00:00",
        "title": "우물 이야기",
        "text": f"{SENTENCE}. 연락은 010-4821-7733 또는 gorae.unique@example.org 로 주세요. "
        "시장 상인들이 가게 앞에서 손님과 물건 가격을 두고 오래 이야기했다.",
        "part": "politics",
    }
    return sorted([*lines, planted], key=lambda line: str(line["date"]))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """Simulated web, parameter server, Dask cluster and settings."""
    from embedding.cluster import stop_pool
    from embedding.kernel.records import WindowUnit
    from embedding.server.config import ServerConfig
    from embedding.server.service import running_server
    from embedding.settings import load_settings
    from yeoron_simweb.config import SimwebConfig
    from yeoron_simweb.sources import sources_toml
    from yeoron_simweb.testing import running

    folder = tmp_path_factory.mktemp("end-to-end")
    config = ServerConfig(
        snapshots=str(folder / "var" / "snapshots"),
        state_dir=folder / "var" / "checkpoints",
        window=WindowUnit.MONTH,
        cut="watermark",
        source_idle_s=IDLE,
        min_count=2,
        min_authors=1,
        min_sources=1,
        device="cpu",
    )
    web = SimwebConfig(seconds_per_month=6.0, autostart=True, crawl_delay=0, max_backlog=60)
    with (
        running(web, documents()) as url,
        world.dask_cluster(folder) as (dask, dashboard),
        running_server(config, dim=world.DIM) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        (folder / "sources.toml").write_text(
            sources_toml(url, every=0.3, rendered=False), encoding="utf-8"
        )
        host = url.removeprefix("http://")
        path = world.write_settings(
            folder,
            ports={"dask": dask, "dask_dashboard": dashboard},
            server={
                "port": int(server.location.rsplit(":", 1)[1]),
                "http_port": int(server.http_url.rsplit(":", 1)[1]),
                "window": "month",
            },
            crawl={
                "allow_private_hosts": [host],
                "replay_clock_url": f"{url}/clock.json",
                "rate": 200.0,
                "extract_processes": 0,
            },
        )
        patch.setenv("YEORON_SETTINGS", str(path))
        yield SimpleNamespace(folder=folder, server=server, settings=load_settings(), web=url)
        stop_pool(load_settings())


def run(dag_bag: Any, name: str, conf: dict[str, Any]) -> None:
    """A DAG run that must succeed."""
    done = dag_bag.dags[name].test(logical_date=next(MOMENT), run_conf=conf)
    states = {ti.task_id: str(ti.state) for ti in done.get_task_instances()}
    assert str(done.state) == "success", states


@pytest.fixture(scope="module")
def played(place: SimpleNamespace, dag_bag: Any) -> SimpleNamespace:
    """Both months, cut, evaluated and reported on."""
    from embedding.snapshots.store import SnapshotStore

    for month in MONTHS:
        quick = {"window": month, "idle_after_s": IDLE, "poll_s": 0.3, "time_limit_s": 400}
        run(dag_bag, "opinion_stream", quick)
    # Silence decides when a window is cut, not whether its last documents were learnt.
    until(lambda: place.server.status()["documents"] >= len(documents()))
    place.store = SnapshotStore(str(place.settings.paths.snapshots))
    place.ids = [ref.id for ref in place.store.list()]
    for snapshot in place.ids:
        run(dag_bag, "evaluate_snapshot", {"snapshot_id": snapshot})
        run(dag_bag, "trend_report", {"snapshot_id": snapshot})
    return place


def test_every_document_of_every_source_is_learnt_once(played: SimpleNamespace) -> None:
    status = played.server.status()
    expected = {"sim-feed": 41, "sim-sitemap": 40, "sim-euckr": 40, "sim-comments": 40}
    assert {n: status["sources"][n]["documents"] for n in expected} == expected
    windows = status["windows"]
    assert all(windows[month]["snapshot"] in played.ids for month in MONTHS)


def test_snapshots_follow_each_other_and_know_the_words(played: SimpleNamespace) -> None:
    first, second = (played.store.open(snapshot) for snapshot in played.ids)
    assert second.ref.parent == first.id
    first.verify()
    second.verify()
    assert "시장" in " ".join(second.words)
    near = [word for word, _ in second.neighbours("학생", 3)]
    assert set(near) <= set(TOPICS[1].split()) | {"이야기"} | set(second.words)


def test_documents_were_scored_before_they_were_learnt(played: SimpleNamespace) -> None:
    quality = played.store.open(played.ids[1]).manifest.quality
    assert quality["nll"] > 0
    assert {"nll.sim-feed", "nll.sim-comments"} <= set(quality)


def test_the_page_shows_the_window_and_a_word(played: SimpleNamespace) -> None:
    from fastapi.testclient import TestClient

    from embedding.web.app import create_app

    page = played.settings.page
    with TestClient(create_app(page)) as client:
        assert client.get("/", follow_redirects=False).status_code in {302, 303, 307, 401}
        token = page.token_file.read_text("utf-8").strip()
        client.post("/login", data={"token": token})
        # A busy machine is still computing it.
        until(lambda: client.get("/").status_code != 202)
        front = client.get("/")
        assert front.status_code == 200
        assert "2020-02" in front.text
        word = client.get("/word/시장")
        assert word.status_code == 200
        assert "시장" in word.text


def readings(data: bytes) -> Iterator[bytes]:
    """The bytes of a file, and what they hold when they are compressed."""
    yield data
    for unpack in (gzip.decompress, zlib.decompress, lzma.decompress):
        try:
            yield unpack(data)
        except (OSError, EOFError, zlib.error, lzma.LZMAError):
            continue


def spellings(text: str) -> set[bytes]:
    """How a text may look on a disk."""
    return {
        text.encode(),
        text.encode("utf-16-le"),
        text.encode("utf-16-be"),
        text.encode("cp949"),
        json.dumps(text).strip('"').encode(),
        base64.b64encode(text.encode())[:-4],
    }


def leaks(folders: list[Path]) -> list[str]:
    wanted = [(piece, spelling) for piece in PIECES for spelling in spellings(piece)]
    found = []
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file():
                for data in readings(world.content(path)):
                    found += [f"{path}: {p}" for p, spelling in wanted if spelling in data]
    return found


def test_no_text_stays_behind(played: SimpleNamespace, airflow_home: Path) -> None:
    places = [played.folder, airflow_home]
    assert leaks(places) == []
    # The search itself must be able to find: plant what it looks for and look again.
    canary = played.folder / "canary.json"
    canary.write_text(json.dumps({"text": SENTENCE}), encoding="utf-8")
    assert leaks(places)
    canary.unlink()
