"""A pool of processes: each question gets its own answer, whatever ends, rests or is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embedding.kernel.children import Child, ChildPool
from generated import examples
from waiting import eventually

ECHO = """
import time
from embedding.kernel.children import serve

def answer(header, body):
    time.sleep(header.get("seconds", 0.0))
    return header, body

serve(answer)
"""


class Echoes(ChildPool):
    """Processes that answer with what they are asked."""

    def __init__(self, processes: int, idle: float, *, stay: bool) -> None:
        super().__init__(processes, idle)
        self._stay = stay

    async def _spawn(self) -> Child:
        return await Child.start("echo_child", quiet=False)

    async def _rest(self, child: Child) -> None:
        if not self._stay:
            await super()._rest(child)
            return
        try:
            await child.ask({"rest": True})
        except (OSError, EOFError):
            await self._end(child)

    async def ask(self, number: int, seconds: float) -> int:
        async with self._borrowed() as child:
            header, _ = await child.ask({"number": number, "seconds": seconds})
            return int(header["number"])

    async def ask_on(self, number: int) -> None:
        """Ask until it is answered: a process that was killed answers nothing."""
        while True:
            with contextlib.suppress(OSError, EOFError):
                assert await self.ask(number, 0.0) == number
                return


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("echo")
    Path(folder, "echo_child.py").write_text(ECHO, encoding="utf-8")
    return os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))


STEPS = st.sampled_from(["ask", "several", "cancel", "kill", "wait"])


@settings(max_examples=examples(5), deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEPS, min_size=1, max_size=8), stay=st.booleans(), short=st.booleans())
def test_each_question_gets_its_own_answer(
    echo: str, steps: list[str], stay: bool, short: bool
) -> None:
    async def play() -> None:
        idle = 0.0 if short else 0.05
        pool = Echoes(2, idle, stay=stay)
        try:
            for number, step in enumerate(steps):
                if step == "several":
                    await asyncio.gather(*(pool.ask_on(10 * number + i) for i in range(5)))
                elif step == "cancel":
                    asked = asyncio.create_task(pool.ask(1000 + number, 30.0))
                    await asyncio.sleep(0.02)
                    asked.cancel()
                    await asyncio.wait((asked,))
                elif step == "kill":
                    for child in list(pool.children):
                        child.kill()
                elif step == "wait":
                    await asyncio.sleep(0.1)
                await pool.ask_on(number)
            assert len(pool.children) <= 2 + steps.count("cancel")
        finally:
            processes = [child.pid for child in pool.children]
            await pool.close()
        assert not [process for process in processes if runs(process)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", echo)
        asyncio.run(play())


def runs(process: int) -> bool:
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_none_ends_while_it_is_asked(echo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", echo)
    pool = Echoes(2, 0.01, stay=False)
    try:
        asked = asyncio.create_task(pool.ask(1, 0.5))
        for number in range(2, 5):
            await pool.ask_on(number)
            await asyncio.sleep(0.03)
        assert await asked == 1
        await eventually(lambda: not pool.children)
    finally:
        await pool.close()


async def test_a_paused_process_at_rest_is_ended_with_its_pool(
    echo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", echo)
    pool = Echoes(1, 0.2, stay=True)
    await pool.ask_on(1)
    (child,) = pool.children
    os.kill(child.pid, signal.SIGSTOP)
    await eventually(lambda: pool._resting)
    await pool.close()
    assert not runs(child.pid)
