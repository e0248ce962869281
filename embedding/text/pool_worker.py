"""The process that prepares text: documents in, a token block out (frames: `children.py`).

The first frame holds the settings. Run as `python -m embedding.text.pool_worker`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from embedding.kernel.children import Reply, serve
from embedding.kernel.errors import ConfigError
from embedding.kernel.logs import begin_logging
from embedding.kernel.records import Document
from embedding.text.collecting import Collecting
from embedding.text.config import TextConfig
from embedding.text.pipeline import TextPipeline

WARM_UP = "준비되었습니다."
_FIELDS = tuple(field.name for field in dataclasses.fields(Document))


def encode(documents: Sequence[Document], available: Sequence[float]) -> dict[str, Any]:
    """What the process is asked; see `TextPipeline.block`."""
    rows = [[getattr(document, name) for name in _FIELDS] for document in documents]
    request = [[x.isoformat() if isinstance(x, datetime) else x for x in row] for row in rows]
    return {"documents": request, "available": list(available)}


def decode(request: dict[str, Any]) -> tuple[list[Document], list[float]]:
    """Inverse of `encode`."""
    documents = []
    for row in request["documents"]:
        values = dict(zip(_FIELDS, row, strict=True))
        for name in ("published_at", "fetched_at"):
            values[name] = datetime.fromisoformat(values[name])
        documents.append(Document(**values))
    return documents, request["available"]


class Preparing:
    """The process's one pipeline."""

    def __init__(self) -> None:
        self._pipeline: TextPipeline | None = None
        self._collecting = Collecting()

    def answer(self, request: dict[str, Any], _body: bytes) -> Reply:
        """A block as Arrow, with digest and report; a defect is named by its type alone, as what it
        says might hold text. A setting that cannot work is answered with its sentence.
        """
        try:
            if "config" in request:
                return self._begin(
                    TextConfig.model_validate(request["config"]), request["warm"]
                ), b""
            if self._pipeline is None:
                raise ConfigError("a text process was given documents before its settings.")
            block = self._pipeline.block(*decode(request))
            self._collecting.between()
            return self._state(self._pipeline), block.to_buffer().to_pybytes()
        except ConfigError as error:
            return {"refused": str(error)}, b""
        except Exception as error:  # noqa: BLE001  (whatever a text provokes is that text's failure)
            return {"defect": type(error).__name__}, b""

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
    serve(Preparing().answer)
