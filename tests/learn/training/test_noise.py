"""Structure noise: features lose their extra parent now and then, as in dropout."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_gradient import CONFIGURATION, hyper, rows_of, states_of

from strategies import easy
from tinybayes.errors import TinybayesError
from tinybayes.learn import chow_liu, naive_bayes
from tinybayes.learn.training import candidates, table_steps
from tinybayes.learn.training.options import TrainingOptions
from tinybayes.learn.training.table_layout import Layout
from tinybayes.learn.training.tables import TableConfiguration, noisy, table_space, train_tables

NOISE = 0.3
DRAWS = 2000


def configuration(found, **changes):
    return TableConfiguration(candidates=found, **(CONFIGURATION | changes))


def steps(run, data):
    """Take one step from the same start with each of many keys; return the states after it."""
    found = run.candidates
    states, classes = states_of(data), data.target.cardinality
    layout = Layout.of([found], states, classes)
    space = table_space(found, states, classes, layout)
    start = table_steps.initial_state(jax.random.key(0), space, layout, classes)
    preference = np.zeros(found.parent.shape) if run.preference is None else run.preference
    start = start._replace(logits=start.logits._replace(value=jnp.asarray(preference, jnp.float32)))
    mask, h = jnp.asarray(found.allowed), hyper(structure_noise=run.structure_noise)
    schedule = table_steps.Schedule(jnp.asarray(0.0), jnp.asarray(1.0), jnp.asarray(0.0))

    def one(key):
        state = start._replace(key=key)
        fixed = table_steps.Tables(space, mask, h)
        return table_steps.TableSteps(layout, False).step(state, fixed, rows_of(data), schedule)

    return jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(1), DRAWS)), space


def used_tables(states, space, found):
    """Which tables a step used, shape (draws, features, choices): those whose entries got a gradient."""
    first = np.asarray(states.theta.first)
    moved = (first != 0).any(axis=(1, 3))  # of each group
    used = np.zeros((len(moved), *found.parent.shape), dtype=bool)
    ends = np.append(np.asarray(space.offset).reshape(-1)[1:], moved.shape[1]).reshape(found.parent.shape)
    for i, k in np.argwhere(found.allowed):
        used[:, i, k] = moved[:, int(space.offset[i, k]) : int(ends[i, k])].any(axis=1)
    return used


def near(share, probability, draws):
    """Within four standard deviations of a binomial share."""
    return abs(share - probability) < 4 * np.sqrt(probability * (1 - probability) / draws)


def test_the_share_of_lost_parents_is_the_noise():
    data = easy(rows=60)
    run = noisy(configuration(candidates.fixed(chow_liu(data)), structure_noise=NOISE))
    states, space = steps(run, data)
    used = used_tables(states, space, run.candidates)
    assert (used.sum(axis=2) == 1).all()  # one table of each feature
    parented = (run.candidates.parent[:, 1] >= 0).nonzero()[0]
    assert len(parented) >= 4
    lost = used[:, parented, 0]
    for feature in range(len(parented)):
        assert near(lost[:, feature].mean(), NOISE, DRAWS)
    # Each feature on its own: two lose theirs together as often as chance has it.
    assert near((lost[:, 0] & lost[:, 1]).mean(), NOISE**2, DRAWS)


def test_without_noise_every_parent_is_kept():
    data = easy(rows=60)
    run = replace(noisy(configuration(candidates.fixed(chow_liu(data)), structure_noise=NOISE)), structure_noise=0.0)
    states, space = steps(run, data)
    used = used_tables(states, space, run.candidates)
    np.testing.assert_array_equal(used[:, :, 1], np.broadcast_to(run.candidates.parent[:, 1] >= 0, used.shape[:2]))


@pytest.mark.exhaustive
def test_a_search_learns_nothing_about_a_feature_that_lost_its_parent():
    data = easy(rows=60)
    found = candidates.subset(6, 3)
    plain, _ = steps(configuration(found), data)
    noised, space = steps(noisy(configuration(found, structure_noise=NOISE)), data)
    wide = found.allowed.sum(axis=1) > 1
    moved = [(np.asarray(s.logits.first) != 0).any(axis=2)[:, wide] for s in (plain, noised)]
    assert moved[0].all()
    assert near(1 - moved[1].mean(), NOISE, moved[1].size)
    lost = used_tables(noised, space, found)[:, wide, 0]
    assert lost[~moved[1]].all()


def test_noise_of_zero_changes_nothing():
    data = easy(rows=100)
    for found in (candidates.fixed(chow_liu(data)), candidates.subset(6, 3), candidates.order_free(6)):
        run = configuration(found)
        assert noisy(run) is run


def test_naive_bayes_is_left_alone():
    data = easy(rows=100)
    run = configuration(candidates.fixed(naive_bayes(data)))
    changed = replace(run, structure_noise=NOISE)
    assert noisy(changed) is changed
    plain, noised = train_tables(data, [run, changed], TrainingOptions(epochs=5, batch_size=50))
    for a, b in zip(plain.net.cpds, noised.net.cpds, strict=True):
        np.testing.assert_allclose(a.table, b.table, atol=1e-6)


def test_a_fixed_structure_keeps_its_parents():
    data = easy()
    tree = candidates.fixed(chow_liu(data))
    plain = configuration(tree)
    (still,) = train_tables(data, [plain], TrainingOptions(epochs=10, batch_size=50))
    (found,) = train_tables(data, [replace(plain, structure_noise=0.6)], TrainingOptions(epochs=10, batch_size=50))
    assert found.parents == still.parents == tuple(tree.parent[:, 0].tolist())
    assert found.net.structure == still.net.structure
    assert found.net != still.net


def test_noise_of_a_search_without_the_other_choice_is_refused():
    data = easy(rows=60)
    search = candidates.subset(6, 3)
    swapped = candidates.Candidates(search.parent[:, ::-1], search.allowed[:, ::-1])
    with pytest.raises(TinybayesError, match='structure_noise: expected "no extra parent" as first choice'):
        train_tables(data, [configuration(swapped, structure_noise=0.1)], TrainingOptions(epochs=1))
    for noise in (-0.1, 1.0, float("nan")):
        with pytest.raises(TinybayesError, match="structure_noise: expected at least 0, below 1"):
            configuration(search, structure_noise=noise)
