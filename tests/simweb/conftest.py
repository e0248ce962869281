"""A small simulated web whose documents are all visible."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from yeoron_simweb.config import PARTS, SimwebConfig
from yeoron_simweb.testing import AT_ONCE, running

PER_PART = 45


def document(number: int, part: str) -> dict[str, object]:
    return {
        "date": f"2020-02-{number % 28 + 1:02d}",
        "title": f"{part} 소식 {number}",
        "content": (
            f"마스크가 부족하다는 {number}번째 신고가 들어와 시청이 조사에 나섰다.\n"
            "주민들은 약국 앞에서 아침부터 줄을 서서 차례를 기다렸다고 말했다.\n"
            "담당자는 다음 주까지 물량을 늘리겠다고 밝혔다. 똠방각하 & <뷁> 😀"
        ),
        "category": "보건",
        "part": part,
    }


DOCUMENTS = [document(number, part) for number in range(PER_PART) for part in PARTS]

CONFIG = SimwebConfig(
    speed=AT_ONCE, autostart=True, hang_seconds=0.4, big_bytes=3_000_000, crawl_delay=0.5
)


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    with running(CONFIG, DOCUMENTS) as address:
        yield address


@pytest.fixture
def web(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=120) as client:
        yield client
