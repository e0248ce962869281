"""Row steps: torch on each device, and the GPU kernels, also interpreted where there is no GPU."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch

from embedding.kernel import devices
from embedding.kernel.errors import ConfigError
from embedding.kernel.records import Table
from embedding.server.rows import torchdevice
from embedding.server.rows.devices import HostDevice, RowDevice, pick_device
from embedding.server.rows.tables import Optimizer, Tables
from embedding.server.rows.torchdevice import TorchDevice, TorchSteps

ROWS = 50


@pytest.fixture(params=["torch", "cpu", "triton"])
def steps(request, device):
    """Each way to change rows, with the device that it is for."""
    where = torch.device(device)
    if request.param == "torch":
        return TorchSteps(), TorchDevice(where)
    if request.param == "cpu":
        if device != "cpu":
            pytest.skip("for the CPU")
        return HostDevice().steps(1), HostDevice()
    if device == "cpu":
        if torch.cuda.is_available():
            pytest.skip("kernels are compiled for the GPU here")
        os.environ["TRITON_INTERPRET"] = "1"
    pytest.importorskip("triton", reason="no Triton here")
    from embedding.server.rows import tritonsteps

    return tritonsteps.TritonSteps(where, 1), TorchDevice(where)


def wide(steps, device: RowDevice, dim: int):
    alike = isinstance(steps, TorchSteps | HostDevice)
    return steps if alike else type(steps)(device.torch, dim)


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
    rows, total = device.place(table.copy()), device.place(moved.copy())
    there, step = device.place(where), device.place(delta)

    kind.add(rows, there, step, 0.5)
    wanted = table.copy()
    wanted[where] += 0.5 * delta.astype(np.float32)
    assert np.allclose(device.host(rows), wanted, atol=1e-6)

    kind.adagrad(rows, total, there, step, 0.5, 0.25)
    d = 0.5 * delta.astype(np.float32)
    sums = moved.copy()
    sums[where] += (d**2).mean(axis=1)
    wanted[where] += d * np.minimum(0.25 / np.sqrt(sums[where]), 1.0)[:, None]
    assert np.allclose(device.host(total), sums, rtol=1e-5)
    assert np.allclose(device.host(rows), wanted, atol=1e-5)

    some = where.copy()
    some[::3] = -1
    found = device.host(kind.gather(rows, device.place(some)))
    assert np.allclose(found, np.where(some[:, None] < 0, 0.0, wanted[some]), atol=1e-5)
    found = device.host(kind.gather(rows, there))
    assert np.allclose(found, wanted[where], atol=1e-5)


def test_a_row_that_never_moved_stays_finite_under_adagrad(steps):
    kind, device = steps
    kind = wide(kind, device, 4)
    rows, moved = device.zeros(2, 4), device.zeros(2)
    rows += 1.0
    where = device.place(np.zeros(1, dtype=np.int64))
    kind.adagrad(rows, moved, where, device.zeros(1, 4), 1.0, 1.0)
    assert rows.tolist() == [[1.0] * 4] * 2


def test_each_device_gets_its_kernels(device):
    chosen = pick_device(device)
    assert isinstance(chosen.steps(100), HostDevice) is (device == "cpu")
    assert isinstance(chosen.steps(100_000), HostDevice if device == "cpu" else TorchSteps)


@pytest.mark.parametrize("by_torch", [False, True])
def test_arrays_go_to_the_device_and_back_unchanged(device, by_torch):
    where = TorchDevice(torch.device(device)) if by_torch else pick_device(device)
    for dtype in (np.float32, np.float16, np.int64):
        values = (1000 * drawn(4, 300, 7)).astype(dtype)
        values.flags.writeable = False
        assert np.array_equal(where.host(where.place(values)), values)
    assert where.host(where.place(drawn(0, 0, 4))).shape == (0, 4)
    assert where.type == device


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


def test_tables_that_nodes_train_on_are_on_a_gpu_only_where_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch, "zeros", lambda *shape, **kind: None)
    monkeypatch.setattr(devices, "may_have_gpu", lambda: True)
    assert pick_device("auto").type == "cuda"
    assert pick_device("auto", shared=True).type == "cpu"
    assert pick_device("cuda", shared=True).type == "cuda"


def test_a_gpu_that_another_process_has_alone_is_named_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def busy(*shape: object, **kind: object) -> None:
        raise RuntimeError("CUDA error: CUDA-capable device(s) is/are busy or unavailable\nmore")

    monkeypatch.setattr(torch, "zeros", busy)
    with pytest.raises(ConfigError, match=r"takes no work \(CUDA error: .*unavailable\); end what"):
        torchdevice.gpu()


def test_a_driver_by_which_torch_finds_no_gpu_is_named_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(devices, "may_have_gpu", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert not devices.on_gpu("auto")
    with pytest.raises(ConfigError, match="or a newer driver"):
        devices.on_gpu("cuda")
