"""Pair likelihood."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from embedding.evaluation.losses import nll
from embedding.kernel.errors import InputError


def test_nothing_learnt_costs_log_two_a_product():
    zero = torch.zeros(3, 4)
    assert nll(zero, zero, torch.zeros(3, 5, 4)).tolist() == pytest.approx([6 * math.log(2)] * 3)


@pytest.mark.parametrize("place", [torch.Tensor.numpy, torch.Tensor.clone])
def test_it_is_the_formula(place):
    torch.manual_seed(0)
    u, v, n = torch.randn(7, 4), torch.randn(7, 4), torch.randn(7, 3, 4)
    expected = [
        -math.log(1 / (1 + math.exp(-float(u[i] @ v[i]))))
        - sum(math.log(1 / (1 + math.exp(float(u[i] @ n[i, k])))) for k in range(3))
        for i in range(7)
    ]
    assert nll(place(u), place(v), place(n)).tolist() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("place", [torch.Tensor.numpy, torch.Tensor.clone])
def test_large_products_stay_finite(place):
    u = torch.tensor([[1e3], [1e3]])
    v = torch.tensor([[1e3], [-1e3]])
    assert nll(place(u), place(v), place(torch.zeros(2, 0, 1))).tolist() == pytest.approx(
        [0.0, 1e6]
    )


def test_no_pairs_and_no_negatives():
    assert nll(np.zeros((0, 4)), np.zeros((0, 4)), np.zeros((0, 5, 4))).shape == (0,)
    assert nll(np.zeros((2, 4)), np.zeros((2, 4)), np.zeros((2, 0, 4))).shape == (2,)


def test_its_gradient_is_that_of_skip_gram():
    u = torch.randn(1, 4, dtype=torch.float64, requires_grad=True)
    v, n = torch.randn(1, 4, dtype=torch.float64), torch.randn(1, 2, 4, dtype=torch.float64)
    nll(u, v, n).sum().backward()
    expected = (torch.sigmoid(u @ v.T) - 1) * v + (torch.sigmoid(n[0] @ u[0])[:, None] * n[0]).sum(
        0
    )
    torch.testing.assert_close(u.grad, expected.detach())


@pytest.mark.parametrize("shapes", [((2, 3), (2, 4), (2, 1, 3)), ((2, 3), (2, 3), (1, 1, 3))])
def test_shapes_that_disagree(shapes):
    with pytest.raises(InputError, match="are accepted, got"):
        nll(*(torch.zeros(shape) for shape in shapes))


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_it_runs_on_a_gpu():
    parts = torch.randn(5, 4), torch.randn(5, 4), torch.randn(5, 3, 4)
    torch.testing.assert_close(nll(*(p.cuda() for p in parts)).cpu(), nll(*parts))
