import os
import signal

import jax
import jax.experimental
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from cases import exhaustive
from strategies import easy, random_data
from tinybayes.compress import quantize
from tinybayes.infer import evaluate, integer_scores
from tinybayes.learn import chow_liu, maximum_likelihood, naive_bayes
from tinybayes.learn.training import candidates, table_layout
from tinybayes.learn.training import table_steps as steps
from tinybayes.learn.training.engine import Rows
from tinybayes.learn.training.losses import hybrid
from tinybayes.learn.training.optimizer import adam as optimizer_step
from tinybayes.learn.training.optimizer import start
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.training.table_layout import Layout
from tinybayes.learn.training.tables import TableConfiguration, table_space, train_tables
from tinybayes.model import Dataset, Fixed, Float

CONFIGURATION = {"lam": 5.0, "gamma": 2.0, "eta": 4.0, "learning_rate": 0.01}


def states_of(data):
    return np.array([v.cardinality for v in data.variables])


def hyper(**changes):
    values = dict.fromkeys(steps.Hyper._fields, 0.0) | CONFIGURATION | {"scale": 1.0, "limit": 1.0} | changes
    return steps.Hyper(**{name: jnp.asarray(value) for name, value in values.items()})


def rows_of(data):
    return Rows(jnp.asarray(data.X, jnp.int32), jnp.asarray(data.y, jnp.int32), jnp.ones(len(data)))


def in_buckets(monkeypatch):
    """Lay out the smallest tables as the largest: in a bucket for each number of states, with nothing filled up."""
    for name, value in (("SMALL", 0), ("ALIGNED", 1), ("WASTE", 0.0), ("WORTH", 2.0)):
        monkeypatch.setattr(table_layout, name, value)


def groups_of(layout):
    """Return the group of every entry."""
    ends = np.cumsum([groups for _, groups in layout.buckets])
    return np.concatenate(
        [np.tile(np.arange(end - n, end), states) for end, (states, n) in zip(ends, layout.buckets, strict=True)]
    )


@pytest.mark.parametrize(("per_row", "buckets"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("seed", [0, *exhaustive(1, 2)])
def test_the_step_follows_the_gradient_of_the_loss(seed, per_row, buckets, monkeypatch):
    """The hand-written gradient equals automatic differentiation of the loss through the normalisation."""
    if buckets:
        in_buckets(monkeypatch)
    with (jax if hasattr(jax, "enable_x64") else jax.experimental).enable_x64(True):
        data = random_data(seed, rows=12)
        found = candidates.subset(4, 3, seed=seed)
        layout = Layout.of([found], states_of(data), 3)
        space = table_space(found, states_of(data), 3, layout)
        state = steps.initial_state(jax.random.key(seed), space, layout, 3, spread=1.0)
        assert (len(layout.buckets) > 1) == buckets
        group = groups_of(layout)
        state = jax.tree.map(lambda a: a.astype(jnp.float64) if a.dtype == jnp.float32 else a, state)
        mask = jnp.asarray(found.allowed)
        draws = (12 if per_row else 1, *mask.shape)
        noise = jax.random.gumbel(jax.random.split(state.key, 3)[1], draws)
        rows, h, tau = rows_of(data), hyper(size_penalty=0.01), 0.7

        def loss(rho, prior, logits):
            """The straight-through estimator written out: one-hot forward, softmax backward."""
            theta = rho - jnp.log(jax.ops.segment_sum(jnp.exp(rho), group, layout.groups))[group]
            prior = prior - jax.scipy.special.logsumexp(prior)
            z = jnp.where(mask, logits + noise, -jnp.inf)
            soft = jax.nn.softmax(z / tau, axis=2)
            hard = jax.nn.one_hot(jnp.argmax(z, axis=2), mask.shape[1])
            choice = jnp.broadcast_to(hard + soft - jax.lax.stop_gradient(soft), (12, *mask.shape))
            cell = steps.cells(rows.X, space, layout.entries)
            entries = theta.at[cell].get(mode="fill", fill_value=0.0)
            scores = prior + jnp.einsum("bik,bikc->bc", choice, entries)
            p = jax.nn.softmax(jnp.where(mask, logits, -jnp.inf), axis=1)
            size = 0.01 * (p * space.size).sum()
            return hybrid(scores, rows.y, h.lam, h.gamma, h.eta, h.conditional) + size

        values = state.theta.value.reshape(-1, 3), state.prior.value, state.logits.value
        wanted = jax.jit(jax.grad(loss, argnums=(0, 1, 2)))(*values)
        after = jax.jit(steps.TableSteps(layout, False, per_row).step)(
            state,
            steps.Tables(space, mask, h),
            rows,
            steps.Schedule(jnp.asarray(0.0), jnp.asarray(tau), jnp.asarray(0.0)),
        )
        for moments, gradient_ in zip((after.theta, after.prior, after.logits), wanted, strict=True):
            # The first moment of Adam after one step is a tenth of the gradient.
            value, first = (part.reshape(gradient_.shape) for part in moments[:2])
            exists = value > -1e29
            np.testing.assert_allclose(np.where(exists, first, 0), 0.1 * np.where(exists, gradient_, 0), atol=1e-9)


def test_tables_in_buckets_are_trained_like_those_in_one_block(monkeypatch):
    data = random_data(3, rows=60)
    tree = chow_liu(data)
    net = maximum_likelihood(data, tree, smoothing=1.0)
    run = TableConfiguration(candidates=candidates.fixed(tree), start=net, **CONFIGURATION)
    quick = TrainingOptions(epochs=3, batch_size=20)
    (whole,) = train_tables(data, [run], quick)
    in_buckets(monkeypatch)
    assert len(Layout.of([run.candidates], states_of(data), 3).buckets) > 1
    (cut,) = train_tables(data, [run], quick)
    for one, other in zip(whole.net.cpds, cut.net.cpds, strict=True):
        np.testing.assert_allclose(one.log_parameters, other.log_parameters, atol=1e-5)


@given(st.lists(st.integers(2, 9), min_size=2, max_size=8), st.integers(0, 9))
def test_every_entry_of_every_table_has_a_place_of_its_own(cardinalities, seed):
    states, found = np.array(cardinalities), candidates.subset(len(cardinalities), 3, seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        in_buckets(patch)
        layout = Layout.of([found], states, 2)
        space = table_space(found, states, 2, layout)
    group, taken = groups_of(layout), set()
    for i, k in np.argwhere(found.allowed):
        parent = found.parent[i, k]
        for above in range(states[parent] if parent >= 0 else 1):
            first = int(space.offset[i, k]) + above
            entries = [first + x * int(space.stride[i]) for x in range(states[i])]
            assert {group[entry] for entry in entries} == {first - int(space.shift[i])}
            assert int(space.owner[first - int(space.shift[i])]) == i
            assert int(space.states[first - int(space.shift[i])]) == states[i]
            taken |= set(entries)
    assert len(taken) == int((np.asarray(space.size) / 2)[found.allowed].sum()) <= layout.entries


def test_the_size_of_a_table_is_its_number_of_entries():
    found = candidates.subset(4, 2)
    data = random_data(0)
    space = table_space(found, states_of(data), 3, Layout.of([found], states_of(data), 3))
    for i, (parents, allowed) in enumerate(zip(found.parent, found.allowed, strict=True)):
        for k in np.flatnonzero(allowed):
            above = data.variables[parents[k]].cardinality if parents[k] >= 0 else 1
            assert space.size[i, k] == above * data.variables[i].cardinality * 3  # R18 counts every entry


def adam(value, slope, rate, steps):
    m = v = 0.0
    for t in range(1, steps + 1):
        g = slope(value)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        value -= rate * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-7)
    return value


def test_the_optimiser_is_adam():
    moments = start(jnp.asarray(2.0))
    for t in range(1, 30):
        moments = optimizer_step(moments, 2 * moments.value, jnp.asarray(0.1), jnp.asarray(t))
    assert float(moments.value) == pytest.approx(adam(2.0, lambda x: 2 * x, 0.1, 29), rel=1e-4)


def test_many_configurations_train_as_one_by_one():
    data = easy()
    runs = [
        TableConfiguration(candidates=candidates.subset(6, 3, seed=s), seed=s, **(CONFIGURATION | {"lam": lam}))
        for s, lam in ((0, 1.0), (1, 10.0), (2, 10.0))
    ]
    together = train_tables(data, runs, TrainingOptions(epochs=6, batch_size=50), test=data)
    for run, both in zip(runs, together, strict=True):
        (alone,) = train_tables(data, [run], TrainingOptions(epochs=6, batch_size=50), test=data)
        assert alone.parents == both.parents
        for a, b in zip(alone.net.cpds, both.net.cpds, strict=True):
            np.testing.assert_allclose(a.log_parameters, b.log_parameters, atol=1e-4)


@pytest.mark.exhaustive
def test_a_batch_that_does_not_fit_is_split():
    data = easy(rows=100)
    runs = [
        TableConfiguration(candidates=candidates.fixed(naive_bayes(data)), seed=s, **CONFIGURATION) for s in range(5)
    ]
    whole = train_tables(data, runs, TrainingOptions(epochs=2, batch_size=50))
    seen = []
    parts = train_tables(data, runs, TrainingOptions(epochs=2, batch_size=50, memory=40_000), report=seen.append)
    assert seen[-1].total > 2
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_allclose(a.net.cpds[0].table, b.net.cpds[0].table, atol=1e-5)


def test_zero_margin_weight_gives_relative_frequencies():
    data = easy()
    run = TableConfiguration(candidates=candidates.fixed(chow_liu(data)), lam=0.0, learning_rate=0.05)
    (found,) = train_tables(data, [run], TrainingOptions(epochs=200, batch_size=50))
    for family, cpd in zip(found.net.structure.families, found.net.cpds, strict=True):
        counts = oracle.counts(data, family).reshape(cpd.table.shape)
        frequencies = counts / counts.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(np.exp(cpd.log_parameters), frequencies, atol=0.03)


@pytest.mark.exhaustive
def test_zero_margin_weight_recovers_the_chow_liu_tree():
    data = easy(rows=2000)
    tree = {frozenset((i, p[0])) for i, p in enumerate(chow_liu(data).parents[:-1]) if len(p) == 2}
    strong = {frozenset((0, 1)), frozenset((2, 3))}
    assert strong <= tree
    runs = [TableConfiguration(candidates=candidates.order_free(6), lam=0.0, structure_rate=0.05, learning_rate=0.03)]
    (found,) = train_tables(data, runs, TrainingOptions(epochs=60, batch_size=100))
    edges = {frozenset((i, p)) for i, p in enumerate(found.parents) if p >= 0}
    assert strong <= edges


@pytest.mark.exhaustive
def test_structure_search_beats_naive_bayes_where_pairs_matter():
    data, other = easy(), easy(seed=1)
    runs = [
        TableConfiguration(candidates=c, structure_rate=0.03, **CONFIGURATION)
        for c in (candidates.fixed(naive_bayes(data)), candidates.subset(6, 5), candidates.order_free(6))
    ]
    naive, ordered, free = (
        r.test_error for r in train_tables(data, runs, TrainingOptions(epochs=40, batch_size=50), test=other)
    )
    assert naive > 0.5
    assert min(ordered, free) < 0.35


@pytest.mark.parametrize(("penalty", "parents"), [(1e3, 0), (0.0, 1)])
def test_the_size_penalty_leads_back_to_naive_bayes(penalty, parents):
    data = easy()
    run = TableConfiguration(
        candidates=candidates.subset(6, 5), size_penalty=penalty, structure_rate=0.03, **CONFIGURATION
    )
    (found,) = train_tables(data, [run], TrainingOptions(epochs=30, batch_size=50))
    assert (sum(p >= 0 for p in found.parents) >= parents) if parents else all(p < 0 for p in found.parents)


@pytest.mark.parametrize("number_format", [Fixed(3, 1), Fixed(2, -1), Fixed(1, 0)])
def test_quantised_training_scores_as_the_network_does(number_format):
    data = easy()
    run = TableConfiguration(candidates=candidates.subset(6, 2), number_format=number_format, **CONFIGURATION)
    (found,) = train_tables(data, [run], TrainingOptions(epochs=8, batch_size=50), test=data)
    assert found.net.cpds[0].format == number_format
    assert evaluate(found.net, data).error == pytest.approx(found.test_error, abs=1e-6)
    assert integer_scores(found.net, data.X).shape == (600, 3)


def test_training_through_few_bits_beats_rounding_afterwards():
    data, other = easy(), easy(seed=5)
    tree, bits = candidates.fixed(chow_liu(data)), Fixed(3, -2)  # a single bit that stands for 0 or -4
    runs = [TableConfiguration(candidates=tree, number_format=f, **CONFIGURATION) for f in (Float(), bits)]
    plain, aware = train_tables(data, runs, TrainingOptions(epochs=120, batch_size=50), test=other)
    rounded = evaluate(quantize(plain.net, bits), other).error
    assert rounded > 0.3
    assert aware.test_error < 0.2


def test_order_free_search_ends_without_cycles_and_pseudo_tan_is_no_network():
    data = easy()
    run = TableConfiguration(candidates=candidates.order_free(6), structure_rate=0.05, **CONFIGURATION)
    (found,) = train_tables(data, [run], TrainingOptions(epochs=20, batch_size=50), validation=data)
    assert found.net is not None
    assert found.history[-1][0] == 20
    (pseudo,) = train_tables(
        data, [run], TrainingOptions(epochs=20, batch_size=50), acyclic_from=float("inf"), test=data
    )
    assert pseudo.net is None
    assert 0 <= pseudo.test_error < 0.5


def test_missing_values_and_weights():
    data = easy()
    X = data.X.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.1] = -1
    gaps = Dataset(data.variables, data.target, X, data.y)
    run = TableConfiguration(candidates=candidates.fixed(chow_liu(gaps)), **CONFIGURATION)
    (found,) = train_tables(gaps, [run], TrainingOptions(epochs=15, batch_size=50), test=data)
    assert found.test_error < 0.3
    # Rows of weight zero change nothing, whatever they hold.
    twice, y = np.concatenate([X, X[::-1]]), np.concatenate([data.y, data.y])
    extra = Dataset(data.variables, data.target, twice, y, np.repeat([1.0, 0.0], 600))
    (weighted,) = train_tables(extra, [run], TrainingOptions(epochs=15, batch_size=50), test=data)
    np.testing.assert_allclose(weighted.net.cpds[0].table, found.net.cpds[0].table, atol=1e-5)


def test_the_best_parameters_are_kept_and_an_interrupt_returns_what_there_is():
    data = easy()
    run = TableConfiguration(candidates=candidates.subset(6, 3), **CONFIGURATION)
    (kept,) = train_tables(
        data,
        [run],
        TrainingOptions(epochs=10, batch_size=50, keep_best=True),
        validation=easy(seed=3),
        test=easy(seed=3),
    )
    assert kept.validation_error == pytest.approx(min(e for _, e in kept.history))
    assert kept.test_error == pytest.approx(kept.validation_error)

    def interrupt(progress):
        if progress.done == 2:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    (stopped,) = train_tables(data, [run], TrainingOptions(epochs=400, batch_size=50), report=interrupt)
    assert not stopped.complete
    assert stopped.net is not None
    assert signal.getsignal(signal.SIGINT) is before


def test_noise_around_a_fixed_structure():
    data = easy()
    free = candidates.order_free(6)
    preference = np.where(free.parent == np.array([-1, 0, -1, 2, -1, -1])[:, None], 3.0, 0.0)
    run = TableConfiguration(candidates=free, preference=preference, structure_rate=0.0, **CONFIGURATION)
    (found,) = train_tables(data, [run], TrainingOptions(epochs=20, batch_size=50), test=data)
    assert found.parents == (-1, 0, -1, 2, -1, -1)
    assert found.test_error < 0.3
