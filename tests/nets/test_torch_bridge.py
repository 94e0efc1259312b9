"""rg.torch.lambda_loss: lambdas by autograd, padded and ragged queries; skipped without PyTorch."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.objectives.lambdas import (
    NETS_BEYOND_CUTOFF,
    LambdaObjective,
    default_truncation,
)
from rankgrove.random import row_keys


@pytest.fixture
def torch():
    return pytest.importorskip("torch", exc_type=ImportError)


def our_lambdas(scores, labels, ptr, measure, **options):
    """Return the lambdas of the objective that LambdaRank follows."""
    target = rg.measure(measure)
    keys = row_keys(np.arange(len(ptr) - 1, dtype=np.uint64), np.asarray(ptr))
    objective = LambdaObjective(
        target,
        np.asarray(labels, np.float64),
        np.asarray(ptr),
        row_keys=keys,
        truncation=default_truncation(target, NETS_BEYOND_CUTOFF),
        **options,
    )
    up, hessian = np.zeros(len(labels)), np.zeros(len(labels))
    objective.gradients(np.asarray(scores, np.float64), up, hessian)
    return up


def ragged(seed=0, sizes=(4, 1, 7, 3)):
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    labels = rng.integers(0, 3, n)
    labels[:2] = 2, 0
    return rng.normal(size=n), labels, np.concatenate([[0], np.cumsum(sizes)])


@pytest.mark.parametrize("measure", ["ndcg@3", "map", "err", "mrr", "pairs", "p@2"])
def test_ragged_queries(torch, measure):
    s, labels, ptr = ragged()
    up = our_lambdas(s, labels, ptr, measure)
    assert np.abs(up).max() > 0
    data = rg.QueryDataset(None, labels, qid=np.repeat(np.arange(4), np.diff(ptr)))
    value = rg.evaluate(s, data, measure).mean[measure]
    turned = np.random.default_rng(1).permutation(s.size)
    for kwargs, order in [
        ({"query_ptr": ptr}, slice(None)),
        ({"qid": data.qid}, slice(None)),
        ({"qid": np.array(list("abcd"))[data.qid]}, slice(None)),
        ({"qid": torch.tensor(data.qid[turned].copy())}, turned),
    ]:
        scores = torch.tensor(s[order].copy(), requires_grad=True)
        given = torch.tensor(labels[order].copy())
        loss = rg.torch.lambda_loss(scores, given, measure, reduction="sum", **kwargs)
        (3.0 * loss).backward()
        np.testing.assert_allclose(scores.grad.numpy(), -3.0 * up[order], rtol=1e-12, atol=1e-15)
        assert loss.item() == pytest.approx(-4 * value)
        assert loss.shape == ()
    scores = torch.tensor(s, requires_grad=True)
    loss = rg.torch.lambda_loss(scores, labels, measure, query_ptr=ptr)
    loss.backward()
    np.testing.assert_allclose(scores.grad.numpy(), -up / 4, rtol=1e-12, atol=1e-15)
    assert loss.item() == pytest.approx(-value)


def test_padded_queries_are_the_ragged_ones(torch):
    s, labels, ptr = ragged()
    width = 9
    mask = np.arange(width)[None, :] < np.diff(ptr)[:, None]
    mask = np.random.default_rng(2).permuted(mask, axis=1)  # what is filled up may stand anywhere
    scores, given = np.full((2, 4, width), np.nan)  # and hold anything
    scores[mask], given[mask] = s, labels
    for dtype, tolerance in [(torch.float64, 1e-12), (torch.float32, 1e-5)]:
        padded = torch.tensor(scores, dtype=dtype, requires_grad=True)
        rg.torch.lambda_loss(
            padded, given, mask=torch.tensor(mask), reduction="sum", sigma=2.0, normalise=True
        ).backward()
        up = our_lambdas(s, labels, ptr, "ndcg@10", sigma=2.0, normalise=True)
        found = padded.grad.numpy()
        assert found.dtype == np.dtype(str(dtype).removeprefix("torch."))
        np.testing.assert_allclose(found[mask], -up, rtol=tolerance, atol=tolerance)
        assert not found[~mask].any()
    # without a mask every place is a document
    whole = torch.zeros(2, 3, requires_grad=True)
    rg.torch.lambda_loss(whole, [[2, 0, 1], [1, 1, 1]]).backward()
    assert whole.grad[0].abs().max() > 0
    assert not whole.grad[1].any()


def test_a_batch_that_says_nothing(torch):
    scores = torch.zeros(2, 3, requires_grad=True)
    loss = rg.torch.lambda_loss(scores, np.ones((2, 3)))
    loss.backward()
    assert loss.item() == 0.0
    assert not scores.grad.any()


def test_a_module_trains_as_lambdarank_does(torch):
    """One epoch of plain steps by autograd ends with the weights of our own net."""
    data = rg.make_artificial(25, n_docs=12, n_features=5, seed=3)
    ours = rg.LambdaRank("ndcg@5", hidden=(4,), n_epochs=1, optimiser="sgd", learning_rate=0.1).fit(
        data
    )
    from rankgrove.nets.training_loop import drawn_network, epoch_order

    net = ours.network_
    start = drawn_network(5, (4,), "tanh", net.mean, net.scale, 0)
    first = torch.nn.Linear(5, 4, dtype=torch.float64)
    last = torch.nn.Linear(4, 1, bias=False, dtype=torch.float64)
    (w, b), out = start.layers[0], start.output
    with torch.no_grad():
        first.weight.copy_(torch.tensor(w.T.copy()))
        first.bias.copy_(torch.tensor(b.copy()))
        last.weight.copy_(torch.tensor(out.copy())[None])
    module = torch.nn.Sequential(first, torch.nn.Tanh(), last)
    optimiser = torch.optim.SGD(module.parameters(), lr=0.1)
    Z = torch.tensor((data.X.astype(np.float64) - net.mean) * net.scale)
    for q in epoch_order(data.query_keys, 0, 0):
        part = slice(data.query_ptr[q], data.query_ptr[q + 1])
        optimiser.zero_grad()
        rg.torch.lambda_loss(module(Z[part])[:, 0], data.y[part], "ndcg@5").backward()
        optimiser.step()
    found = [first.weight.T.reshape(-1), first.bias, last.weight.reshape(-1)]
    np.testing.assert_allclose(torch.cat(found).detach().numpy(), net.flat, rtol=1e-9, atol=1e-12)


def test_own_measures(torch):
    rg.register_measure("first_label", lambda labels: labels[0] / labels.max())

    scores = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
    rg.torch.lambda_loss(scores, [2, 0, 1], "first_label").backward()
    assert scores.grad[0] < 0


def test_refusals(torch):
    loss = rg.torch.lambda_loss
    scores = torch.zeros(4, requires_grad=True)
    with pytest.raises(rg.DataError, match="scores as a tensor"):
        loss([0.0, 1.0], [0, 1])
    with pytest.raises(rg.DataError, match=r"labels must have the shape of the scores, \(4,\)"):
        loss(scores, [1, 0])
    with pytest.raises(rg.ParameterError, match=r"'query_ptr'.*rise from 0"):
        loss(scores, [1, 0, 1, 0], query_ptr=[0, 3])
    with pytest.raises(rg.DataError, match="qid must have one id per score"):
        loss(scores, [1, 0, 1, 0], qid=[1, 1])
    with pytest.raises(rg.DataError, match="give one"):
        loss(scores, [1, 0, 1, 0], qid=[1, 1, 1, 1], query_ptr=[0, 4])
    with pytest.raises(rg.DataError, match="have one query per row"):
        loss(scores.reshape(2, 2), [[1, 0], [1, 0]], qid=[1, 2])
    with pytest.raises(rg.DataError, match="mask must be True or False"):
        loss(scores, [1, 0, 1, 0], mask=[1, 0])
    with pytest.raises(rg.DataError, match="leaves no document"):
        loss(scores, [1, 0, 1, 0], mask=[0, 0, 0, 0])
    with pytest.raises(rg.DataError, match="labels must be finite"):
        loss(scores, [1, 0, 1, np.nan])
    with pytest.raises(rg.DataError, match="training diverged"):
        loss(scores * np.nan, [1, 0, 1, 0])
    with pytest.raises(rg.DataError, match="of shape"):
        loss(torch.zeros(2, 2, 2), np.zeros((2, 2, 2)))
    with pytest.raises(rg.ParameterError, match="'reduction'"):
        loss(scores, [1, 0, 1, 0], reduction="none")
    with pytest.raises(rg.ParameterError, match="'truncation'"):
        loss(scores, [1, 0, 1, 0], truncation=0)


def test_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(rg.MissingExtraError, match=r"pip install 'rankgrove\[torch\]'"):
        rg.torch.lambda_loss(np.zeros(2), [1, 0])


@pytest.mark.slow
def test_torch_is_not_imported_by_itself():
    code = "import sys, rankgrove as rg; rg.torch; rg.LambdaRank; print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
