"""Row steps: torch on each device, and the GPU kernels, also interpreted where there is no GPU."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch

from embedding.kernel.errors import ConfigError
from embedding.kernel.records import Table
from embedding.server.rows.steps import FetchingSteps, RowSteps, TorchSteps, pick_steps
from embedding.server.rows.tables import Optimizer, Tables, pick_device
from embedding.server.rows.transfer import to_device, to_host

ROWS = 50


@pytest.fixture(params=["torch", "fetching", "triton"])
def steps(request, device) -> tuple[RowSteps, torch.device]:
    """Each way to change rows, with the device that it is for."""
    where = torch.device(device)
    if request.param == "torch":
        return TorchSteps(), where
    if request.param == "fetching":
        if device != "cpu":
            pytest.skip("for the CPU")
        return FetchingSteps(), where
    if device == "cpu":
        if torch.cuda.is_available():
            pytest.skip("kernels are compiled for the GPU here")
        os.environ["TRITON_INTERPRET"] = "1"
    pytest.importorskip("triton", reason="no Triton here")
    from embedding.server.rows import tritonsteps

    return tritonsteps.TritonSteps(where, 1), where


def wide(steps: RowSteps, device: torch.device, dim: int) -> RowSteps:
    return steps if isinstance(steps, TorchSteps) else type(steps)(device, dim)


def drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def places(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).permutation(ROWS)[:n].astype(np.int64)


@pytest.mark.parametrize("dim", [1, 100, 129])
@pytest.mark.parametrize("n", [0, 1, 50])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_steps_do_what_numpy_does(steps, dim, n, dtype):
    kind, device = steps
    kind = wide(kind, device, dim)
    table, moved = drawn(1, ROWS, dim), np.abs(drawn(2, ROWS))
    delta, where = drawn(3, n, dim).astype(dtype), places(n)
    rows = torch.from_numpy(table.copy()).to(device)
    total = torch.from_numpy(moved.copy()).to(device)
    there, step = torch.from_numpy(where).to(device), torch.from_numpy(delta).to(device)

    kind.add(rows, there, step, 0.5)
    wanted = table.copy()
    wanted[where] += 0.5 * delta.astype(np.float32)
    assert np.allclose(rows.cpu().numpy(), wanted, atol=1e-6)

    kind.adagrad(rows, total, there, step, 0.5, 0.25)
    d = 0.5 * delta.astype(np.float32)
    sums = moved.copy()
    sums[where] += (d**2).mean(axis=1)
    wanted[where] += d * np.minimum(0.25 / np.sqrt(sums[where]), 1.0)[:, None]
    assert np.allclose(total.cpu().numpy(), sums, rtol=1e-5)
    assert np.allclose(rows.cpu().numpy(), wanted, atol=1e-5)

    some = where.copy()
    some[::3] = -1
    found = kind.gather(rows, torch.from_numpy(some).to(device), gaps=True).cpu().numpy()
    assert np.allclose(found, np.where(some[:, None] < 0, 0.0, wanted[some]), atol=1e-5)
    found = kind.gather(rows, there, gaps=False).cpu().numpy()
    assert np.allclose(found, wanted[where], atol=1e-5)


def test_a_row_that_never_moved_stays_finite_under_adagrad(steps):
    kind, device = steps
    kind = wide(kind, device, 4)
    rows, moved = torch.ones((2, 4), device=device), torch.zeros(2, device=device)
    where = torch.zeros(1, dtype=torch.int64, device=device)
    kind.adagrad(rows, moved, where, torch.zeros((1, 4), device=device), 1.0, 1.0)
    assert rows.tolist() == [[1.0] * 4] * 2


def test_each_device_gets_its_kernels(device):
    kind = pick_steps(torch.device(device), 100)
    assert isinstance(kind, FetchingSteps) is (device == "cpu")
    assert isinstance(pick_steps(torch.device(device), 100_000), TorchSteps)


def test_arrays_go_to_the_device_and_back_unchanged(device):
    where = torch.device(device)
    for dtype in (np.float32, np.float16, np.int64):
        values = (1000 * drawn(4, 300, 7)).astype(dtype)
        values.flags.writeable = False
        there = to_device(values, where)
        assert there.device.type == device
        assert np.array_equal(to_host(there), values)
    assert to_host(to_device(drawn(0, 0, 4), where)).shape == (0, 4)


def test_tables_on_a_gpu_and_on_the_cpu_agree():
    """The same pushes give the same rows, within float32."""
    if not torch.cuda.is_available():
        pytest.skip("no GPU here")
    found = []
    for device in ("cpu", "cuda"):
        tables = Tables(
            100,
            device=pick_device(device),
            capacity=1_000,
            seed=3,
            optimizer=Optimizer("adagrad", rate=0.5),
        )
        every = np.arange(1_000)
        tables.start(every, every)
        for turn in range(20):
            slots = np.random.default_rng(turn).permutation(1_000)[:300].astype(np.int64)
            tables.add(Table.IN, slots, drawn(turn, 300, 100), 0.3)
        found.append(tables.read(Table.IN, every))
    assert np.allclose(*found, atol=1e-4)


def test_a_gpu_that_is_not_there_is_named():
    if torch.cuda.is_available():
        pytest.skip("a GPU is here")
    with pytest.raises(ConfigError, match="no usable GPU"):
        pick_device("cuda")


def test_tables_that_processes_share_stay_off_the_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert pick_device("auto").type == "cuda"
    assert pick_device("auto", shared=True).type == "cpu"
    with pytest.raises(ConfigError, match="hogwild"):
        pick_device("cuda", shared=True)
