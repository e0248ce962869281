"""The MLflow model of a snapshot: a script ("models from code"), no pickle.

MLflow copies this file into the model and runs it to load one, also where Yeoron is not
installed: it needs only numpy, pandas, pyarrow and mlflow, and is imported by nothing here.
"""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

_BLOCK = 16_384
_CENTRED, _FEWEST, _UNSURE = 3_000, 100, 20.0
"""As in snapshots/nearness.py, which cannot be imported here; a test compares the answers."""
_COLUMNS = ("word", "neighbour", "nearness", "rank", "reason")


class NearestWords(mlflow.pyfunc.PythonModel):  # type: ignore[misc]
    """Answers the nearest words of the snapshot in the artifact `snapshot`."""

    def load_context(self, context: Any) -> None:
        """Map vectors.arrow and read manifest.json."""
        folder = Path(context.artifacts["snapshot"])
        self.unreadable = (context.model_config or {}).get("unreadable")
        self.manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        with pa.memory_map(str(folder / "vectors.arrow")) as source:
            batch = pa.ipc.open_file(source).get_batch(0)
        # Arrow follows wild offsets of a file made by hand.
        batch.validate(full=True)
        self.words = batch.column("word")
        table = batch.column("in").flatten().to_numpy()
        self.vectors = table.reshape(batch.num_rows, -1) if batch.num_rows else table[:0, None]
        counts = np.maximum(batch.column("count").to_numpy(), 1).astype(np.float64)
        self.sure = np.sqrt(counts / (counts + _UNSURE)).astype(np.float32)
        frequent = np.argsort(-counts, kind="stable")[:_CENTRED]
        self.centre = np.zeros(self.vectors.shape[1], dtype=np.float32)
        if len(frequent) >= _FEWEST:
            self.centre = _unit(self.vectors[frequent]).mean(axis=0, dtype=np.float64)
            self.centre = self.centre.astype(np.float32)

    def predict(
        self,
        context: Any,  # noqa: ARG002 - MLflow's signature
        model_input: list[str],
        params: dict[str, Any] | None = None,
    ) -> pd.DataFrame:
        """Nearest words of each word.

        model_input  words; MLflow also accepts a DataFrame of one column and hands it on as a list
        params       `n`: neighbours of each word (10)
        returns      one line a neighbour: word, neighbour, nearness (float64), rank from 1, reason
                     (empty); an unknown word has one line with rank 0 and the reason, and so has
                     each word of a model that cannot be read yet
        """
        n = max(1, int((params or {}).get("n", 10)))
        lines: list[tuple[str, str, float, int, str]] = []
        if self.unreadable:
            reason = f"snapshot {self.manifest['id']}: {self.unreadable}"
            lines = [(word, "", float("nan"), 0, reason) for word in model_input]
            return pd.DataFrame(lines, columns=list(_COLUMNS))
        for word in model_input:
            row = pc.index(self.words, unicodedata.normalize("NFC", word)).as_py()
            if row < 0:
                reason = f"not in the vocabulary of snapshot {self.manifest['id']}"
                lines.append((word, "", float("nan"), 0, reason))
                continue
            best, near = self._nearest(row, n)
            for rank, (at, figure) in enumerate(zip(best, near, strict=True), start=1):
                lines.append((word, self.words[int(at)].as_py(), float(figure), rank, ""))
        return pd.DataFrame(lines, columns=list(_COLUMNS))

    def _nearest(self, row: int, n: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float32]]:
        """Rows of the n nearest words, nearest first, and how near they are."""
        query = self._directions(self.vectors[row : row + 1])[0]
        starts = range(0, len(self.vectors), _BLOCK)
        parts = [self._directions(self.vectors[at : at + _BLOCK]) @ query for at in starts]
        near = np.concatenate(parts) * self.sure
        near[row] = -np.inf
        n = min(n, len(near) - 1)
        best = np.argpartition(-near, n)[:n] if n < len(near) else np.arange(len(near))
        best = best[np.lexsort((best, -near[best]))]
        return best, near[best]

    def _directions(self, vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Unit rows less what all words have in common, at length 1."""
        nonzero = vectors.any(axis=1, keepdims=True)
        return _unit((_unit(vectors) - self.centre) * nonzero)


def _unit(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    cosines: npt.NDArray[np.float32] = np.divide(
        rows, norms, out=np.zeros_like(rows), where=norms > 0
    )
    return cosines


mlflow.models.set_model(NearestWords())
