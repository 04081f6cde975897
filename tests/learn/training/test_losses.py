import math

import jax
import jax.experimental
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinybayes.learn.training.losses import conditional_loss, hybrid, large_margin, negative_log_likelihood


@pytest.fixture(autouse=True)
def _double_precision():
    with (jax if hasattr(jax, "enable_x64") else jax.experimental).enable_x64(True):
        yield


def sample(seed, rows=6, classes=4):
    generator = np.random.default_rng(seed)
    scores = generator.normal(scale=3, size=(rows, classes)) - 10
    return scores, generator.integers(0, classes, rows), generator.random(rows) + 0.5


@given(st.integers(0, 1000), st.floats(0.1, 20), st.floats(1, 20))
def test_losses_by_their_definitions(seed, gamma, eta):
    scores, y, weight = sample(seed)
    nll, cll, margin = [], [], []
    for s, t, w in zip(scores.tolist(), y.tolist(), weight.tolist(), strict=True):
        nll.append(-w * s[t])
        cll.append(-w * (s[t] - math.log(sum(map(math.exp, s)))))
        soft = math.log(sum(math.exp(eta * (gamma - s[t] + s[c])) for c in range(4) if c != t)) / eta
        margin.append(w * max(0.0, soft))
    assert negative_log_likelihood(scores, y, weight) == pytest.approx(np.mean(nll))
    assert conditional_loss(scores, y, weight) == pytest.approx(np.mean(cll))
    assert large_margin(scores, y, gamma, eta, weight) == pytest.approx(np.mean(margin))
    wanted = np.mean(nll) + 3 * np.mean(margin) + 2 * np.mean(cll)
    assert hybrid(scores, y, 3.0, gamma, eta, 2.0, weight) == pytest.approx(wanted)


@given(st.integers(0, 1000))
def test_a_sharp_maximum_gives_the_margin_to_the_best_other_class(seed):
    scores, y, _ = sample(seed)
    others = np.where(np.arange(4) == y[:, None], -np.inf, scores).max(axis=1)
    wanted = np.maximum(0, 5 - (scores[np.arange(6), y] - others)).mean()
    assert large_margin(scores, y, 5.0, 1e4) == pytest.approx(wanted, abs=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_gradients_equal_finite_differences(seed):
    scores, y, weight = sample(seed)
    for loss in (
        lambda s: negative_log_likelihood(s, y, weight),
        lambda s: conditional_loss(s, y, weight),
        lambda s: large_margin(s, y, 2.0, 3.0, weight),
        lambda s: hybrid(s, y, 50.0, 2.0, 10.0, 0.5, weight),
    ):
        loss = jax.jit(loss)
        found = np.asarray(jax.jit(jax.grad(loss))(scores))
        for place in np.ndindex(scores.shape):
            step = np.zeros_like(scores)
            step[place] = 1e-6
            wanted = (loss(scores + step) - loss(scores - step)) / 2e-6
            assert found[place] == pytest.approx(float(wanted), abs=2e-5)
