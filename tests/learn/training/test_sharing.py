"""Tables whose contexts have a part in common, against the model written out with both parts."""

import jax
import jax.experimental
import jax.numpy as jnp
import numpy as np
import pytest
from test_gradient import CONFIGURATION, hyper, rows_of, states_of

from cases import exhaustive
from strategies import easy, random_data
from tinybayes.errors import TinybayesError
from tinybayes.learn import chow_liu
from tinybayes.learn.training import candidates
from tinybayes.learn.training import table_steps as steps
from tinybayes.learn.training.losses import hybrid
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.training.table_layout import Layout
from tinybayes.learn.training.tables import TableConfiguration, table_space, train_tables


def written_out(start, rows, space, choices, h, rate, sharing):
    """Adam on both parts, with automatic differentiation through the normalisation; return the tables."""

    def tables(parts):
        rho = parts[0].reshape(len(parts[1]), -1, 3) + parts[1][:, np.asarray(space.owner), :]
        return rho - jax.scipy.special.logsumexp(rho, axis=0, keepdims=True)

    def loss(parts, choice):
        cell = steps.cells(rows.X, space, start.theta.value.size // 3)
        chosen = jnp.take_along_axis(cell, choice[None, :, None], axis=2)[:, :, 0]
        scores = start.prior.value + tables(parts).reshape(-1, 3)[chosen].sum(axis=1)
        return hybrid(scores, rows.y, h.lam, h.gamma, h.eta, h.conditional)

    parts = [start.theta.value, jnp.zeros_like(start.common.value)]
    moments = [[np.zeros(p.shape), np.zeros(p.shape)] for p in parts]
    slope = jax.jit(jax.grad(loss))
    for t, choice in enumerate(choices, start=1):
        slopes = slope(parts, choice)
        for k, factor in enumerate((1.0, sharing)):
            first, second = moments[k]
            moments[k] = [0.9 * first + 0.1 * slopes[k], 0.999 * second + 0.001 * slopes[k] ** 2]
            corrected = rate * factor * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
            parts[k] = parts[k] - corrected * moments[k][0] / (np.sqrt(moments[k][1]) + 1e-7)
    return tables(parts)


@pytest.mark.parametrize("k", [3, *exhaustive(0)])
@pytest.mark.parametrize("seed", [1, *exhaustive(0)])
def test_steps_equal_those_of_the_two_parts_written_out(seed, k):
    with (jax if hasattr(jax, "enable_x64") else jax.experimental).enable_x64(True):
        data = random_data(seed, rows=12)
        found = candidates.subset(4, k, seed=seed) if k else candidates.fixed(chow_liu(data))
        layout = Layout.of([found], states_of(data), 3, one=True)
        space = table_space(found, states_of(data), 3, layout)
        state = steps.initial_state(jax.random.key(seed), space, layout, 3, spread=1.0, sharing=True)
        state = jax.tree.map(lambda a: a.astype(jnp.float64) if a.dtype == jnp.float32 else a, state)
        mask, rows, h = jnp.asarray(found.allowed), rows_of(data), hyper(sharing=0.5)
        fixed = steps.Tables(space, mask, h)
        schedule = steps.Schedule(jnp.asarray(2.0), jnp.asarray(1.0), jnp.asarray(0.0))  # twice the rate of 0.01
        take_step, after, choices = jax.jit(steps.TableSteps(layout, False).step), state, []
        for _ in range(3):
            noise = jax.random.gumbel(jax.random.split(after.key, 3)[1], (1, *mask.shape))
            choices.append(jnp.argmax(jnp.where(mask, after.logits.value + noise, -jnp.inf), axis=2)[0])
            after = take_step(after, fixed, rows, schedule)
            after = after._replace(prior=state.prior)  # the oracle leaves the prior alone
        wanted = written_out(state, rows, space, choices, h, 0.02, 0.5)
        filled = np.asarray(layout.to_entries(space.owner[:, None] >= 0))  # not the groups that only fill the bucket
        assert not filled.all()
        exists = (np.asarray(state.theta.value) > -1e29) & filled
        np.testing.assert_allclose(np.asarray(after.theta.value)[exists], np.asarray(wanted)[exists], atol=1e-5)


def test_a_rare_context_follows_the_others():
    """Without sharing, a context that never occurs stays where it started; with it, it learns from the others."""
    data = easy(rows=300)
    found = candidates.fixed(chow_liu(data))
    parent, child = next((int(p[0]), i) for i, p in enumerate(found.parent) if p[0] >= 0)
    seen = data.rows(data.X[:, parent] != 0)
    spread = {}
    for sharing in (0.0, 1.0):
        run = TableConfiguration(candidates=found, **(CONFIGURATION | {"sharing": sharing}))
        net = train_tables(seen, [run], TrainingOptions(epochs=30, batch_size=50))[0].net
        cpd = net.cpds[child]
        table = np.asarray(cpd.log_parameters).reshape(data.variables[parent].cardinality, 3, -1)
        spread[sharing] = np.ptp(table[0], axis=1).max()
    assert spread[0.0] < 0.25 < spread[1.0]


def test_sharing_needs_one_structure_for_a_batch():
    data = easy(rows=60)
    run = TableConfiguration(candidates=candidates.subset(6, 3, seed=0), sharing=1.0, per_row=True)
    with pytest.raises(TinybayesError, match="one structure for a mini-batch"):
        train_tables(data, [run], TrainingOptions(epochs=1))
