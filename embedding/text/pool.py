"""Text preparation outside the crawler's process: masks and morphemes hold up no event loop."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import psutil

from embedding.kernel.children import IDLE_SECONDS, Child, ChildPool, Reply
from embedding.kernel.errors import ConfigError, PlatformError
from embedding.kernel.leftout import LeftOut
from embedding.kernel.records import Document, EncodedBlock, TokenBlock
from embedding.text.config import TextConfig
from embedding.text.pool_worker import NONE, PROGRESS, encode

log = logging.getLogger(__name__)

_WORKER = "embedding.text.pool_worker"
_BROKEN = (OSError, EOFError, TimeoutError, ValueError)
_FIRST_TRY = 0.1
"""Part of the time that a text may take at first, among others."""
_LOOK_SECONDS, _LOOKS = 5.0, 60
"""A process that sleeps through so many looks and uses no processor time waits for ever."""


class TextPool(ChildPool):
    """`TextPipeline` in `processes` processes of their own, started when they are first needed.

    A text is left out, and passed on without a word, when preparing it raises, or when it ends its
    process twice: among others, and then alone in a fresh process. Both count processor time, which
    a busy machine does not make longer: `limit` seconds for each million characters begun, a tenth
    of it at first. `left_out` names each. Every process has a cache and new words of its own, and
    one that is started again begins without them. So none ends while nothing is read: after `idle`
    seconds it gives the memory of the morpheme analyser back, until the next text.
    """

    def __init__(
        self,
        config: TextConfig,
        processes: int,
        limit: float,
        *,
        warm: bool,
        idle: float = IDLE_SECONDS,
    ) -> None:
        super().__init__(processes, idle)
        self._config = config
        self._limit = limit
        self._warm = warm
        self._reports: dict[int, dict[str, Any]] = {}
        self.digest = ""
        """That of the latest block."""
        self.left_out = LeftOut()
        """Documents that could not be prepared, by key."""

    async def prepare(self) -> None:
        """Start one process.

        Raises ConfigError for settings that cannot work, PlatformError when it dies at once.
        """
        async with self._borrowed():
            pass

    async def block(self, documents: Sequence[Document], available: Sequence[float]) -> TokenBlock:
        """See `TextPipeline.block`; raises ConfigError and PlatformError as `prepare` does."""
        return TokenBlock.from_buffer((await self.encoded(documents, available)).buffer)

    async def encoded(
        self, documents: Sequence[Document], available: Sequence[float], incarnation: str = ""
    ) -> EncodedBlock:
        """The block as its process wrote it, marked with `incarnation` (see `TokenBlock`)."""
        asked = list(documents)
        met: Counter[int] = Counter()
        while True:
            made = await self._try(encode(asked, available, incarnation), _FIRST_TRY)
            if isinstance(made, EncodedBlock):
                return made
            reading, reason = made
            which = f"{len(asked)} texts" if reading == NONE else asked[reading].url
            log.warning("%s: preparing it failed, it is tried again: %s", which, reason)
            met[reading] += 1
            suspects: Sequence[int] = (reading,)
            if reading == NONE:
                # Whoever kills a process that reads no text says nothing of the texts.
                suspects = range(len(asked)) if met[NONE] > 1 else ()
            failed = [
                (number, why)
                for number in suspects
                if (why := await self._fails_alone(asked[number])) is not None
            ]
            if not failed and met[reading] > 1:
                if reading == NONE:
                    raise PlatformError(f"texts cannot be prepared, whichever: {reason}.")
                failed = [(reading, reason)]
            for number, why in failed:
                self._leave_out(asked[number].url, why)
                asked[number] = replace(asked[number], text="", title="")

    async def _fails_alone(self, document: Document) -> str | None:
        """Why a document cannot be prepared alone in a fresh process either; None: it can."""
        why = None
        for _ in range(2):
            made = await self._try(encode([document], [0.0]), 1.0)
            if isinstance(made, EncodedBlock):
                return None
            before, (_, why) = why, made
            if why == before or why.startswith(_SLOW):
                return why
        return why

    def _leave_out(self, key: str, reason: str) -> None:
        self.left_out.add(key, reason)
        log.error("%s: its text is left out: %s", key, reason)

    async def _try(self, request: dict[str, Any], part: float) -> EncodedBlock | tuple[int, str]:
        """One attempt, with a part of the time that each document may take: the block, or the
        number of the document that was being read, and why there is none."""
        seconds = part * self._limit
        async with self._borrowed() as child:
            (progress,) = child.files
            try:
                os.pwrite(progress, PROGRESS.pack(NONE), 0)
                header, body = await self._answer(child, {**request, "seconds": seconds})
                if "defect" in header:
                    await self._end(child)
                    return NONE, f"preparing it raised {header['defect']}"
                for key, reason in header["left_out"].items():
                    self._leave_out(key, reason)
                return EncodedBlock(body, int(header["tokens"]))
            except _BROKEN as error:
                number = PROGRESS.unpack(os.pread(progress, PROGRESS.size, 0))[0]
                reason = await _how_it_ended(child, seconds, error)
                await self._end(child)
                return number, reason

    async def _answer(self, child: Child, asked: dict[str, Any]) -> Reply:
        """The answer of a process, however long it works; TimeoutError when it waits for ever."""
        answer = asyncio.ensure_future(self._ask(child, asked))
        used, looks = -1.0, 0
        try:
            while not (await asyncio.wait((answer,), timeout=_LOOK_SECONDS))[0]:
                before, used = used, _slept_at(child.pid)
                looks = looks + 1 if used == before >= 0 else 0
                if looks == _LOOKS:
                    raise TimeoutError("it waited for ever")
            return answer.result()
        finally:
            answer.cancel()

    async def _spawn(self) -> Child:
        progress = os.memfd_create("progress")
        return await Child.start(_WORKER, str(progress), quiet=False, files=(progress,))

    async def _ready(self, child: Child) -> None:
        try:
            settings = {"config": self._config.model_dump(mode="json"), "warm": self._warm}
            await self._answer(child, settings)
        except _BROKEN as error:
            raise PlatformError(
                f"a text process ended before it was ready ({type(error).__name__}); "
                "is there memory for the morpheme analyser (half a gigabyte)?"
            ) from error

    async def _rest(self, child: Child) -> None:
        try:
            await self._answer(child, {"rest": True})
        except _BROKEN:
            await self._end(child)

    async def _ask(self, child: Child, header: dict[str, Any]) -> Reply:
        answer, body = await child.ask(header)
        if "refused" in answer:
            raise ConfigError(answer["refused"])
        if "digest" in answer:
            self.digest = answer["digest"]
            self._reports[child.pid] = answer["report"]
        return answer, body

    def report(self) -> dict[str, Any]:
        """See `TextPipeline.report`; counters of all processes added up, shares averaged."""
        reports = list(self._reports.values())
        failures = self.left_out.report()
        return {**merged(reports), **failures} if reports or self.left_out else {}


_SLOW = "it took more than"


async def _how_it_ended(child: Child, seconds: float, error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return str(error)
    code = await child.returncode()
    if code == -signal.SIGPROF:
        return f"{_SLOW} {seconds:g} s of processor time"
    name = signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"
    return f"its process ended ({name})"


def _slept_at(process: int) -> float:
    """Processor seconds that a process has used; -1 where it is not waiting for something."""
    try:
        child = psutil.Process(process)
        times = child.cpu_times()
        return times.user + times.system if child.status() == psutil.STATUS_SLEEPING else -1.0
    except psutil.Error:
        return -1.0


def merged(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One report of several: numbers are added, shares (floats) averaged, names taken as they are.

    Words that several processes met count for each of them.
    """
    result: dict[str, Any] = {}
    for name in dict.fromkeys(name for report in reports for name in report):
        values = [report[name] for report in reports if name in report]
        if isinstance(values[0], dict):
            result[name] = merged(values)
        elif isinstance(values[0], float):
            result[name] = sum(values) / len(values)
        elif isinstance(values[0], int):
            result[name] = sum(values)
        else:
            result[name] = values[-1]
    return result
