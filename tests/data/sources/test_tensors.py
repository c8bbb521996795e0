"""Arrays of other libraries: shared where they can be, else converted by batches, never whole."""

import ml_dtypes
import numpy as np
import pytest

import metricwise as mw
import worlds
from metricwise.data.sources import tensors

RECIPE = {"confusion": "labels", "recalibrate": False}


class Tensor:
    """What PyTorch's tensors can do: on a device or not, with a gradient or not, of a type that NumPy lacks or not."""

    largest = 0

    def __init__(self, array, *, device=False, grad=False, negative=False):
        self.array, self.device, self.grad = array, device, grad
        self.negative = negative  # the memory has the opposite signs, which __dlpack__ does not say
        self.shape, self.dtype, self.ndim = array.shape, f"torch.{array.dtype}", array.ndim

    def __len__(self):
        return len(self.array)

    def __getitem__(self, rows):
        return Tensor(self.array[rows], device=self.device, grad=self.grad, negative=self.negative)

    def detach(self):
        return Tensor(self.array, device=self.device, negative=self.negative)

    def resolve_neg(self):
        return Tensor(-self.array if self.negative else self.array, device=self.device, grad=self.grad)

    def float(self):
        return Tensor(self.array.astype(np.float32), device=self.device, negative=self.negative)

    def cpu(self):
        return Tensor(self.array, negative=self.negative)

    def numpy(self):
        if self.grad or self.device or self.negative:
            raise RuntimeError("can't be converted")
        Tensor.largest = max(Tensor.largest, self.array.size)
        return self.array

    def __array__(self, *args, **kwargs):
        return self.numpy()

    def __dlpack_device__(self):
        return (2, 0) if self.device else (1, 0)

    def __dlpack__(self, **kwargs):
        if self.grad or self.device or self.array.dtype == ml_dtypes.bfloat16:
            raise BufferError("cannot be exported")
        return self.array.__dlpack__(**kwargs)


class Eager:
    """What TensorFlow's can do: no method of NumPy's but one that makes an array, of any type."""

    def __init__(self, array):
        self.array, self.shape, self.dtype, self.ndim = array, array.shape, f"<dtype: {array.dtype}>", array.ndim

    def __len__(self):
        return len(self.array)

    def __getitem__(self, rows):
        return Eager(self.array[rows])

    def numpy(self):
        return self.array

    def cpu(self):
        raise AssertionError("deprecated")

    def __dlpack__(self, **kwargs):
        raise BufferError("cannot be exported")

    def __dlpack_device__(self):
        return (2, 0)


def draw():
    eta, y = worlds.multiclass(400, [0.4, 0.7, 1.0])
    return eta.astype(np.float32), y


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    from metricwise.rules import lazy

    monkeypatch.setattr(tensors, "_BATCH_ENTRIES", 150)
    monkeypatch.setattr(lazy, "_BATCH_ENTRIES", 150)
    monkeypatch.setattr(Tensor, "largest", 0)


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_tensors_without_methods_of_arrays(kind):
    eta, y = draw()
    eta = eta.astype(ml_dtypes.bfloat16) if kind == "bfloat16" else eta
    whole = mw.optimize(eta.astype(np.float32), y, "macro_f1", strategy=mw.Strategy(**RECIPE))
    found = mw.optimize(Eager(eta), Eager(y), "macro_f1", strategy=mw.Strategy(**RECIPE))
    assert found.value == whole.value
    np.testing.assert_array_equal(found.rule.predict(Eager(eta)), whole.rule.predict(eta.astype(np.float32)))


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("where", [{}, {"grad": True}, {"device": True}, {"device": True, "grad": True}])
def test_tensors_are_what_their_numbers_are(kind, where):
    eta, y = draw()
    eta = eta.astype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)
    plain = eta.astype(np.float32) if kind == "bfloat16" else eta
    whole = mw.optimize(plain, y, "macro_f1", strategy=mw.Strategy(**RECIPE))
    tensor = Tensor(eta, **where)
    found = mw.optimize(tensor, Tensor(y, device=bool(where.get("device"))), "macro_f1", strategy=mw.Strategy(**RECIPE))
    assert found.value == whole.value
    np.testing.assert_array_equal(found.rule.predict(tensor), whole.rule.predict(plain))
    shared = not where.get("device") and kind != "bfloat16"
    labels = len(y) if where.get("device") else 0  # are converted at once
    assert Tensor.largest <= (0 if shared else max(150, labels))


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
@pytest.mark.parametrize("where", [{}, {"grad": True}, {"device": True}])
def test_tensors_that_are_marked_as_negated(kind, where):
    eta, y = draw()
    eta = eta.astype(ml_dtypes.bfloat16) if kind == "bfloat16" else eta
    plain = eta.astype(np.float32)
    tensor = Tensor(-eta, negative=True, **where)
    rule = mw.WeightedRule.from_weights([1, 2, 3])
    np.testing.assert_array_equal(rule.predict(tensor), rule.predict(plain))
    assert (
        mw.optimize(tensor, y, "macro_f1", strategy=mw.Strategy(**RECIPE)).value
        == mw.optimize(plain, y, "macro_f1", strategy=mw.Strategy(**RECIPE)).value
    )


def test_a_default_call_with_weights_and_several_outputs():
    rng = np.random.default_rng(1)
    p = rng.random((300, 2)).astype(np.float32)
    y = (rng.random((300, 2)) < p).astype(int)
    weight = rng.integers(1, 4, 300)
    whole = mw.optimize(p, y, "f1", average="macro", sample_weight=weight)
    found = mw.optimize(Tensor(p, device=True), y, "f1", average="macro", sample_weight=weight)
    assert found.value == pytest.approx(whole.value, abs=1e-12)
    assert found.gain.estimate == pytest.approx(whole.gain.estimate, abs=1e-12)


def test_a_mixture_draws_by_position():
    eta, y = draw()
    rule = mw.optimize(
        eta, y, "min_recall", strategy=mw.Strategy(confusion="expected", recalibrate=False, randomized=True)
    ).rule
    np.testing.assert_array_equal(rule.predict(Tensor(eta, device=True)), rule.predict(eta))


def test_refusals():
    eta, y = draw()
    eta[250, 1] = np.nan
    with pytest.raises(ValueError, match=r"proba must be finite, got NaN or infinity in row 250"):
        mw.optimize(Tensor(eta, device=True), y, "macro_f1")
    with pytest.raises(ValueError, match=r"y must have as many rows as proba, 400, got 300"):
        mw.optimize(Tensor(eta, device=True), y[:300], "macro_f1")
    with pytest.raises(ValueError, match=r"proba must have at least one row"):
        mw.optimize(Tensor(eta[:0], device=True), y[:0], "macro_f1")
