"""How long an answer waits for reports that are not finished."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from embedding.ask.answers import LaterError
from embedding.ask.questions import ChangeQuestion


def test_of_all_reports_that_are_missing_only_the_first_is_waited_for() -> None:
    asked: list[tuple[str, Any]] = []

    def report(window: str, wait_s: float | None) -> Any:
        asked.append((window, wait_s))
        if window != "2026-01":
            raise LaterError
        return None

    windows = ["2026-01", "2026-02", "2026-03", "2026-04"]
    answers: Any = SimpleNamespace(
        list=lambda: [SimpleNamespace(id=window) for window in windows],
        config=SimpleNamespace(trends=SimpleNamespace(history_windows=60)),
        report=report,
    )
    with pytest.raises(LaterError):
        ChangeQuestion("마스크").answer(answers, 3.0)
    assert asked == [("2026-01", 3.0), ("2026-02", 3.0), ("2026-03", 0), ("2026-04", 0)]
