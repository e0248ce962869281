"""The process that prepares text: documents in, a token block out (frames: `children.py`).

The first frame holds the settings. Run as `python -m embedding.text.pool_worker`.
"""

from __future__ import annotations

import gc
import os
import signal
import struct
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from embedding.kernel.children import Reply, serve
from embedding.kernel.errors import ConfigError
from embedding.kernel.logs import begin_logging
from embedding.kernel.records import Document
from embedding.text.config import TextConfig
from embedding.text.pipeline import TextPipeline

PROGRESS = struct.Struct(">q")
NONE = -1
"""The number in the progress file while no document is read."""
MILLION = 1_000_000
WARM_UP = "준비되었습니다."
_TIMES = ("published_at", "fetched_at")
FULL = 500
"""Blocks between two looks of the garbage collector at everything."""


def encode(
    documents: Sequence[Document], available: Sequence[float], incarnation: str = ""
) -> dict[str, Any]:
    """What the process is asked; see `TextPipeline.block`, and `TokenBlock` for `incarnation`."""
    rows = list(map(vars, documents))
    return {"documents": rows, "available": list(available), "incarnation": incarnation}


def decode(request: dict[str, Any]) -> tuple[list[Document], list[float]]:
    """Inverse of `encode`."""
    documents = []
    for values in request["documents"]:
        times = {name: datetime.fromisoformat(values[name]) for name in _TIMES}
        documents.append(Document(**{**values, **times}))
    return documents, request["available"]


class Collecting:
    """Python's cyclic garbage collector: taken over from `begin` on, and run between blocks alone.

    The cache holds a million objects that live long and are in no cycle. Left to itself the
    collector looks through them again and again while a block is made: it took two fifths of the
    time outside of the analyser.
    """

    def __init__(self) -> None:
        self._blocks = 0

    def begin(self) -> None:
        """What is loaded now stays and is looked at no more."""
        gc.collect()
        gc.freeze()
        gc.disable()

    def between(self) -> None:
        """Collect what the block left: the younger generations, all of them each `FULL` blocks."""
        self._blocks += 1
        gc.collect(1 if self._blocks % FULL else 2)


class Preparing:
    """The process's one pipeline.

    progress  descriptor of a file in which the number of the document stands that is being read

    A text that takes more processor time than it may ends the process by SIGPROF.
    """

    def __init__(self, progress: int) -> None:
        self._progress = progress
        self._seconds = 0.0
        self._pipeline: TextPipeline | None = None
        self._collecting = Collecting()

    def answer(self, request: dict[str, Any], _body: bytes) -> Reply:
        """A block as Arrow, with digest and report; a defect is named by its type alone, as what it
        says might hold text. A setting that cannot work is answered with its sentence.
        """
        try:
            if "config" in request:
                config = TextConfig.model_validate(request["config"])
                return self._begin(config, request["warm"]), b""
            if self._pipeline is None:
                raise ConfigError("a text process was given documents before its settings.")
            if "rest" in request:
                self._pipeline.rest()
                return {}, b""
            self._seconds = request["seconds"]
            block = self._pipeline.block(*decode(request), before=self._before)
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            self._collecting.between()
            if request["incarnation"]:
                block = replace(block, incarnation=request["incarnation"])
            state = {**self._state(self._pipeline), "left_out": self._pipeline.left_out}
            return {**state, "tokens": block.n_tokens}, block.to_buffer().to_pybytes()
        except ConfigError as error:
            return {"refused": str(error)}, b""
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001  (whatever a text provokes is that text's failure)
            return {"defect": type(error).__name__}, b""

    def _before(self, number: int, characters: int) -> None:
        """A document is read next: it may take so long for each million characters begun."""
        os.pwrite(self._progress, PROGRESS.pack(number), 0)
        signal.setitimer(signal.ITIMER_PROF, self._seconds * (1 + characters // MILLION))

    def _begin(self, config: TextConfig, warm: bool) -> dict[str, Any]:
        """Make the pipeline; `warm` loads the morpheme analyser, which takes seconds."""
        self._pipeline = pipeline = TextPipeline(config)
        if warm:
            pipeline.words(WARM_UP, "ko")
        self._collecting.begin()
        return self._state(pipeline)

    def _state(self, pipeline: TextPipeline) -> dict[str, Any]:
        return {"digest": pipeline.digest, "report": pipeline.report()}


if __name__ == "__main__":
    begin_logging("text")
    serve(Preparing(int(sys.argv[1])).answer)
