"""Processes that answer: a frame in on stdin, a frame out on stdout.

A frame is two big-endian uint32 lengths, that many bytes of JSON, and that many bytes as they are.
Such a process ends with its parent, because its stdin then ends. No pickle, nothing on disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import struct
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import Any

from embedding.kernel.processes import import_paths

Reply = tuple[dict[str, Any], bytes]

_HEADER = struct.Struct(">II")
_ENDING = 2.0
IDLE_SECONDS = 300.0
"""A pool of processes that is asked nothing for so long gives memory back."""
_BUFFER = 1 << 20


def pack(header: dict[str, Any], body: bytes = b"") -> bytes:
    """One frame; times go as text. Unpaired surrogates, which broken pages hold, survive."""
    text = json.dumps(header, ensure_ascii=False, default=datetime.isoformat)
    head = text.encode("utf-8", "surrogatepass")
    return b"".join((_HEADER.pack(len(head), len(body)), head, body))


def unpack(head: bytes) -> dict[str, Any]:
    """The JSON of a frame."""
    value: dict[str, Any] = json.loads(head.decode("utf-8", "surrogatepass"))
    return value


class Child:
    """One such process, asked from one event loop, one question at a time."""

    def __init__(self, process: Process, files: Sequence[int]) -> None:
        self._process = process
        self.files = list(files)
        """Descriptors that it inherited; `end` closes them."""
        self.asked = False
        """Whether it was ever asked something."""

    @classmethod
    async def start(
        cls, module: str, *arguments: str, quiet: bool, files: Sequence[int] = ()
    ) -> Child:
        """Run `python -m module`. `quiet`: what it writes to stderr is thrown away.

        files  descriptors that it inherits, and that are closed with it
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            module,
            *arguments,
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL if quiet else None,
            env={**os.environ, **import_paths()},
            limit=_BUFFER,
            pass_fds=files,
        )
        return cls(process, files)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def returncode(self) -> int | None:
        """How it ended: minus the number of the signal that ended it; None where it still runs.

        To be asked before `end`, which takes the code from asyncio when it kills what has ended.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ENDING):
                return await self._process.wait()
        return None

    async def ask(self, header: dict[str, Any], body: bytes = b"") -> Reply:
        """Send one frame and read the answer; raises OSError or EOFError when the process ended.

        Who is cancelled here must `kill`: the answer is still to come.
        """
        self.asked = True
        asked, answered = self._process.stdin, self._process.stdout
        if asked is None or answered is None:
            raise EOFError("the process has no pipes")
        asked.write(pack(header, body))
        await asked.drain()
        head, rest = _HEADER.unpack(await answered.readexactly(_HEADER.size))
        return unpack(await answered.readexactly(head)), await answered.readexactly(rest)

    def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()

    async def end(self) -> None:
        """End it at once and wait until it is gone."""
        self.kill()
        while self.files:
            os.close(self.files.pop())
        # Reading to the end closes the pipes too, before the loop goes. On a busy machine a
        # killed process may take longer to go; nobody needs to wait for that.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ENDING):
                await self._process.communicate()


class ChildPool:
    """At most `processes` children, started when they are first needed.

    Each is asked by one at a time. When none was asked for `idle` seconds, all end, or do what
    else `_rest` says. Used from one event loop; `close` it at the end.
    """

    def __init__(self, processes: int, idle: float) -> None:
        self.children: set[Child] = set()
        """Those that were started and not ended."""
        self._free: asyncio.LifoQueue[Child | None] = asyncio.LifoQueue(processes)
        for _ in range(processes):
            self._free.put_nowait(None)
        self._idle = idle
        self._timer: asyncio.TimerHandle | None = None
        self._resting: asyncio.Task[None] | None = None

    async def _spawn(self) -> Child:
        raise NotImplementedError

    async def _ready(self, child: Child) -> None:
        """What a new process is asked first."""

    async def _rest(self, child: Child) -> None:
        """Take memory back from a process that nobody needs."""
        await self._end(child)

    @contextlib.asynccontextmanager
    async def _borrowed(self) -> AsyncIterator[Child]:
        """A process that nobody else asks meanwhile. It ends when something is raised in here."""
        if self._timer is not None:
            self._timer.cancel()
        child = await self._free.get()
        try:
            if child is None:
                child = await self._spawn()
                self.children.add(child)
                await self._ready(child)
            yield child
        except Exception:
            if child is not None:
                await self._end(child)
            raise
        except BaseException:
            # Its answer is still to come and must not be taken for that to the next question.
            if child is not None:
                child.kill()
            child = None
            raise
        finally:
            self._free.put_nowait(child if child in self.children else None)
            if self._free.full():
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(self._idle, self._begin_rest)

    def _begin_rest(self) -> None:
        self._resting = asyncio.ensure_future(self._rest_all())

    async def _rest_all(self) -> None:
        """Whoever needs one of them meanwhile waits."""
        for child in [self._free.get_nowait() for _ in range(self._free.qsize())]:
            if child is not None:
                await self._rest(child)
            self._free.put_nowait(child if child in self.children else None)

    async def _end(self, child: Child) -> None:
        self.children.discard(child)
        await child.end()

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._resting is not None:
            self._resting.cancel()
        await asyncio.gather(*map(self._end, list(self.children)), return_exceptions=True)


def serve(answer: Callable[[dict[str, Any], bytes], Reply]) -> None:
    """The other side: answer frames until the input ends. Ctrl-C is the parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    outgoing = sys.stdout.buffer
    # A stray print of a library must not break the frames.
    sys.stdout = sys.stderr
    incoming = sys.stdin.buffer
    while True:
        header = incoming.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return
        lengths = _HEADER.unpack(header)
        head, body = (incoming.read(length) for length in lengths)
        if (len(head), len(body)) != lengths:
            return
        outgoing.write(pack(*answer(unpack(head), body)))
        outgoing.flush()
