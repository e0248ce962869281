"""Which rows of n-grams (fastText) lie on a shard, and where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embedding.kernel.errors import RefusedError
from embedding.kernel.records import IntArray
from embedding.server.validation import check_buckets


@dataclass(frozen=True)
class ShardBuckets:
    """Bucket b lies on shard b mod `count`, at place b div `count` of its table `sub`.

    buckets  in all, 0 where the model has none; index  this shard's number
    """

    buckets: int
    index: int
    count: int

    def places(self, ids: IntArray, what: str) -> IntArray:
        """Rows of buckets, int64 [n]; RefusedError for one that there is not, or of others."""
        check_buckets(ids, self.buckets, what)
        if bool(np.any(ids % self.count != self.index)):
            raise RefusedError(
                f"{what}: an n-gram bucket that is not of shard {self.index} of {self.count}, "
                f"which holds those with bucket mod {self.count} = {self.index}."
            )
        found: IntArray = ids // self.count
        return found
