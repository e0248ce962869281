"""Whole multiples of a step: Strom 2015, "Scalable distributed DNN training using commodity GPU
cloud computing", section 3.

Strom sends ±τ once for an entry that has gone beyond it. A push here is the sum of a block's
updates, in which a frequent word goes many τ; so an entry is sent as the nearest whole number of
steps, mostly one. The rest, less than a step, stays with the node.

One τ for all rows would hold the slow ones back until they are far from what others know of them:
rare words, whose vectors the nodes then learn twice. So the step of a row follows how far it moved,
as the values of one bit do (`onebit.py`); Strom's τ is the least step.

The entries are those of the rows along their principal directions (`principal.py`), of which a few
hold most of what there is to send.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from embedding.exchange.compression.base import Compressor
from embedding.exchange.compression.traits import COMPRESSIONS, CompressionTraits
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import ByteArray, PackedDelta, RowDelta
from embedding.kernel.config import part_of
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import FloatArray, IntArray, Table
from yeoron_lab.settings import StepSettings
from yeoron_lab.steps import planes
from yeoron_lab.steps.principal import Basis, DirectionArray, principal
from yeoron_lab.steps.varints import check

_LAYOUT = 2
_HEAD = np.dtype([("layout", "u1"), ("directions", "<u2"), ("step", "<f4")])
_NONE = np.empty(0, dtype=np.bool_)
_FINEST, _FINE = 1e-7, 0.5
"""Least and relative step of what is sent at the end. A row's step is at most 0.5 · 2^(1/4) = 0.6
times the root mean square of what was kept back of it; an entry below it is lost."""


@COMPRESSIONS.register("threshold", CompressionTraits())
class Threshold(Compressor):
    """Layout: version, number of directions and least step; directions int8 [k, dim]; `planes.py`.

    step        the least step
    relative    a row's step as a multiple of the root mean square of its entries; 0: `step` for
                all, of entries as they are
    directions  principal directions that are sent along, at most
    """

    kind = "threshold"

    def __init__(self, step: float, relative: float = 0.0, directions: int = 0) -> None:
        self.step = np.float32(step)
        self.relative = np.float32(relative)
        self.directions = directions if relative > 0 else 0

    @classmethod
    def of(cls, config: ExchangeConfig) -> Threshold:
        steps = part_of(config, StepSettings)
        return cls(steps.threshold, steps.relative_threshold, steps.directions)

    @classmethod
    def finest(cls, config: ExchangeConfig) -> Threshold:
        """In steps of half the root mean square of a row, to the nearest power of the root of 2: a
        seventh of float16's bytes. Each entry is off by less than its row's step, and what is lost
        is a twentieth of the energy of what compression had kept back.
        """
        return cls(_FINEST, _FINE, part_of(config, StepSettings).directions)

    def pack(
        self,
        table: Table,
        ids: IntArray,
        values: FloatArray,
        first: npt.NDArray[np.bool_] = _NONE,
    ) -> PackedDelta:
        """See Compressor.

        first  bool [n], rows of which the receiver has nothing: in steps finer than any other's
        """
        rows, dim = values.shape
        axes = principal(values, self.directions)
        basis = Basis(axes)
        turned = basis.turned(values)
        levels, chosen = np.empty(rows, dtype=np.uint8), np.empty(rows, dtype=np.int64)
        n, entries = planes.choose(turned, first, self.step, self.relative, levels, chosen)
        parts = planes.written(ids, turned, levels, chosen[:n], self.step, basis.leading)
        basis.back(turned, values)
        head = np.array([(_LAYOUT, basis.leading, self.step)], dtype=_HEAD).view(np.uint8)
        data = np.concatenate([head, axes.reshape(-1).view(np.uint8), planes.squeezed(parts)])
        return PackedDelta(table, self.kind, n, dim, entries, data)

    @classmethod
    def unpack(cls, packed: PackedDelta) -> RowDelta:
        rows, dim = packed.rows, packed.dim
        step, axes, rest = _head(packed.data, dim)
        most = planes.most(rows, dim, len(axes)).tolist()
        parts = planes.expanded(rest, cls.kind, most=most)
        ids, values, entries = planes.read(parts, rows, dim, step, len(axes), cls.kind)
        check(6 if entries != packed.entries else 0, cls.kind)
        return RowDelta(packed.table, ids, Basis(axes).back(values))


def _head(data: ByteArray, dim: int) -> tuple[np.float32, DirectionArray, ByteArray]:
    """The least step, the directions, and the bytes behind them."""
    where = "push: rows packed as threshold"
    if data.nbytes < _HEAD.itemsize:
        raise RefusedError(f"{where}: the step is missing.")
    layout, k, step = np.frombuffer(data[: _HEAD.itemsize].tobytes(), dtype=_HEAD)[0].tolist()
    if layout != _LAYOUT:
        raise RefusedError(f"{where} in layout {layout}; {_LAYOUT} is accepted: update the node.")
    if not (math.isfinite(step) and step > 0):
        raise RefusedError(f"{where}: a step that is not finite or not above 0.")
    end = _HEAD.itemsize + k * dim
    if k > dim or data.nbytes < end:
        raise RefusedError(f"{where}: {k} directions of {dim} columns are not in its bytes.")
    axes = data[_HEAD.itemsize : end].view(np.int8).reshape(k, dim)
    return np.float32(step), axes, data[end:]
