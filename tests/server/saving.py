"""What a part of a server puts into a checkpoint, without one."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from embedding.server.parts import Content, Part
from embedding.server.words.digests import WordDigests, WordsCopy

NO_WORDS = WordsCopy(np.empty(0, dtype=np.int64), [], WordDigests())


def saved(part: Part) -> Content:
    """As it is read back; nothing of the part is shared with it."""
    found = part.save()
    files = found.files(NO_WORDS)
    tables = {name: each for name, each in files.items() if isinstance(each, pa.Table)}
    arrays = {name: each.copy() for name, each in files.items() if isinstance(each, np.ndarray)}
    return Content(json.loads(json.dumps(found.facts)), arrays, tables)
