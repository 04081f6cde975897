"""Levels against all partitions, tied networks against enumeration, Theorem 1, and the price."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oracle
import zoo
from tinybayes.compress import LevelPath, optimal_levels, tie
from tinybayes.cost import model_cost
from tinybayes.errors import TinybayesError
from tinybayes.infer import log_partition
from tinybayes.model import CPD, BayesNet, Codebook, Dataset, Fixed, Float, Variable

SEEDS = st.integers(0, 10**6)
NUMBERS = st.lists(
    st.sampled_from([-9.5, -3.0, -2.75, -1.0, -0.5, -0.25, 0.0, 1.0, 4.0]) | st.floats(-20, 5), min_size=1, max_size=8
)


def least_error(values, weights, k):
    """Try every partition into k groups that may be anything, not only runs."""
    best = math.inf
    for groups in itertools.product(range(k), repeat=len(values)):
        total = 0.0
        for group in range(k):
            inside = [i for i in range(len(values)) if groups[i] == group]
            if inside:
                weight = sum(weights[i] for i in inside)
                mean = sum(weights[i] * values[i] for i in inside) / weight
                total += sum(weights[i] * (values[i] - mean) ** 2 for i in inside)
        best = min(best, total)
    return best


@given(values=NUMBERS, weights=st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=8, max_size=8), k=st.integers(1, 3))
def test_levels_are_optimal(values, weights, k):
    weights = weights[: len(values)]
    k = min(k, len(set(values)))
    levels = optimal_levels(np.array(values), k, np.array(weights))
    assert len(levels) == k
    assert levels.tolist() == sorted(levels)
    error = sum(w * min((v - level) ** 2 for level in levels) for v, w in zip(values, weights, strict=True))
    assert error == pytest.approx(least_error(values, weights, k), abs=1e-9)
    path = LevelPath(np.array(values), len(values), np.array(weights))
    assert path.costs[k - 1] == pytest.approx(error, abs=1e-9)
    assert path.levels(k).tolist() == pytest.approx(levels.tolist())
    assert path.levels(path.most).tolist() == pytest.approx(sorted(set(values)))


def test_large_problems_agree_with_the_plain_programme():
    rng = np.random.default_rng(0)
    values, weights, most = np.sort(rng.exponential(size=300)), rng.random(300) + 0.1, 25
    best = np.full((most + 1, 301), np.inf)
    best[0, 0] = 0
    for j in range(1, 301):
        for i in range(j):
            mean = np.average(values[i:j], weights=weights[i:j])
            error = (weights[i:j] * (values[i:j] - mean) ** 2).sum()
            best[1:, j] = np.minimum(best[1:, j], best[:-1, i] + error)
    assert LevelPath(values, most, weights).costs == pytest.approx(best[1:, -1], abs=1e-9)


@pytest.mark.parametrize(
    "arguments", [([1.0], 0), ([1.0, np.inf], 1), ([], 1), ([1.0, 2.0], 1, [0.0, 1.0]), ([1.0], 2)]
)
def test_levels_that_cannot_be(arguments):
    with pytest.raises(TinybayesError, match="levels: expected"):
        optimal_levels(*[np.array(a) if isinstance(a, list) else a for a in arguments])


def random_case(seed, *, trees=False, target=True, zeros=0.2):
    """A normalised network with some zeros, and rows drawn so that none is impossible."""
    rng = np.random.default_rng(seed)
    net = zoo.random_net(rng, 4, target=target, trees=trees, formats=(Float(64),))
    cpds = []
    for cpd in net.cpds:
        p = np.exp(cpd.log_parameters) * (rng.random(cpd.table.shape) >= zeros)
        p[p.sum(axis=1) == 0] = 1
        cpds.append(zoo.cpd(p / p.sum(axis=1, keepdims=True), cpd.parents, cpd.tree))
    net = BayesNet(net.variables, net.target, tuple(cpds))
    rows, logs = oracle.joint(net)
    p = np.exp(logs)
    drawn = rows[rng.choice(len(rows), 30, p=p / p.sum())]
    X = drawn[:, : len(net.variables)]
    return net, Dataset(net.variables, net.target, X, drawn[:, -1] if target else None, rng.random(30)), drawn


def mean_log(net, drawn, weight):
    """The exact mean log-likelihood, by enumeration."""
    logs = [oracle.log_joint(net, row) for row in drawn.tolist()]
    return np.average(logs, weights=weight) - oracle.log_sum(oracle.joint(net)[1])


def distinct(net):
    return len(np.unique(np.concatenate([cpd.log_parameters.ravel() for cpd in net.cpds])))


@given(seed=SEEDS, k=st.integers(2, 9), per_table=st.booleans(), trees=st.booleans(), target=st.booleans())
def test_theorem_1_holds_and_the_figures_are_those_of_enumeration(seed, k, per_table, trees, target):
    net, data, drawn = random_case(seed, trees=trees, target=target)
    most = max(len(np.unique(c.log_parameters)) for c in net.cpds) if per_table else distinct(net)
    assume(most >= 2)
    k = min(k, most)
    result = tie(net, k, data=data, per_table=per_table)
    before, after = mean_log(net, drawn, data.weight), mean_log(result.model, drawn, data.weight)
    assert result.normalization == "exact"
    assert result.before == pytest.approx(before, abs=1e-9)
    assert result.after == pytest.approx(after, abs=1e-9)
    assert result.log_partition == pytest.approx(log_partition(result.model), abs=1e-9)
    assert before - after <= result.table_bound + 1e-9
    assert result.table_bound <= result.bound + 1e-9
    assert result.levels <= k
    with np.errstate(invalid="ignore"):
        changes = [
            np.abs(a.log_parameters - b.log_parameters) for a, b in zip(net.cpds, result.model.cpds, strict=True)
        ]
    assert result.epsilon == pytest.approx(max(np.nanmax(c) for c in changes))
    entries = sum(c.table.size for c in net.cpds)
    assert result.bound == pytest.approx(2 * entries * result.epsilon)
    for old, new in zip(net.cpds, result.model.cpds, strict=True):
        assert np.array_equal(np.isneginf(old.log_parameters), np.isneginf(new.log_parameters))
        assert (old.parents, old.tree) == (new.parents, new.tree)


def test_the_price_is_the_levels_once_and_an_index_an_entry():
    net, _, _ = random_case(5)
    entries = sum(cpd.table.size for cpd in net.cpds)
    for k in (2, 3, 4, 5, 8, 9, 16, 17):
        tied = tie(net, k).model
        assert len({cpd.format for cpd in tied.cpds}) == 1
        assert model_cost(tied).bits == 32 * k + math.ceil(math.log2(k)) * entries
    own = tie(net, 3, per_table=True).model
    books = {cpd.format for cpd in own.cpds}
    expected = sum(32 * len(book.values) for book in books)
    expected += sum(math.ceil(math.log2(len(c.format.values))) * c.table.size for c in own.cpds)
    assert model_cost(own).bits == expected
    free, _, _ = random_case(5, zeros=0)
    assert model_cost(tie(free, 1).model).bits == 32


def test_levels_are_what_32_bits_hold():
    net, _, _ = random_case(7)
    values = np.array(tie(net, 6).model.cpds[0].format.values)
    assert np.array_equal(values, values.astype(np.float32))


def test_as_many_levels_as_values_change_nothing_that_32_bits_hold():
    net, _, _ = random_case(8)
    tied = tie(net, distinct(net))
    assert tied.epsilon < 1e-6
    single = BayesNet(net.variables, net.target, tuple(tie(net, distinct(net)).model.cpds))
    again = tie(single, distinct(single))
    assert again.epsilon == 0
    assert again.model == single


def test_auto_takes_the_best_of_its_path():
    net, data, drawn = random_case(11)
    result = tie(net, "auto", data=data)
    best = max(score for _, score in result.path)
    assert result.after == best
    assert result.levels == min(k for k, score in result.path if score == best)
    assert [k for k, _ in result.path] == sorted(
        {2, 3, 4, 6, 8, 12, 16, 24, distinct(net)} & set(range(2, distinct(net) + 1))
    )
    for k, score in result.path[:4]:
        assert score == pytest.approx(mean_log(tie(net, k).model, drawn, data.weight), abs=1e-9)
    assert [k for k, _ in tie(net, "auto", data=data, candidates=[5, 2, 5]).path] == [2, 5]


@given(seed=SEEDS)
def test_renormalised_networks_are_bayesian(seed):
    net, data, drawn = random_case(seed)
    assume(distinct(net) >= 3)
    result = tie(net, 3, data=data, renormalize=True)
    assert result.normalization == "rows"
    assert result.model.is_normalized()
    assert result.log_partition == pytest.approx(0, abs=1e-5)
    assert result.after == pytest.approx(mean_log(result.model, drawn, data.weight), abs=1e-5)
    assert result.before - result.after <= result.table_bound + 1e-5
    raw = tie(net, 3).model
    for cpd, tied in zip(raw.cpds, result.model.cpds, strict=True):
        p = np.exp(cpd.log_parameters)
        assert np.exp(tied.log_parameters) == pytest.approx(p / p.sum(axis=1, keepdims=True), abs=1e-6)


def test_a_network_too_large_to_sum_over_is_judged_by_its_normalised_rows():
    net, data, _ = random_case(13)
    result = tie(net, 4, data=data, max_edges=3)
    assert result.normalization == "rows"
    assert result.log_partition is None
    assert isinstance(result.model.cpds[0].format, Codebook)
    assert result.after == pytest.approx(tie(net, 4, data=data, renormalize=True).after, abs=1e-9)
    X = data.X.copy()
    X[0, 0] = -1
    partial = Dataset(data.variables, data.target, X, data.y)
    with pytest.raises(TinybayesError, match="unknown values in 1 rows"):
        tie(net, 4, data=partial, max_edges=3)


def test_unknown_values_are_summed_out():
    net, data, drawn = random_case(17)
    known = drawn.copy()
    known[::2, 0] = -1
    known[1::3, -1] = -1
    partial = Dataset(data.variables, data.target, known[:, :-1], known[:, -1])
    result = tie(net, 5, data=partial)
    rows, logs = oracle.joint(result.model)
    expected = [oracle.log_sum(logs[oracle.agreeing(rows, row)]) - oracle.log_sum(logs) for row in known]
    assert result.after == pytest.approx(np.mean(expected), abs=1e-9)
    assert result.before - result.after <= result.table_bound


def test_smoothing_takes_the_zeros_away_and_says_so():
    net, data, _ = random_case(19)
    kept, raised = tie(net, 4, data=data), tie(net, 4, data=data, zeros=0.01)
    assert kept.zeros == sum(np.isneginf(c.log_parameters).sum() for c in net.cpds) > 0
    assert raised.zeros == 0
    assert np.isfinite(raised.model.cpds[0].format.values).all()
    assert kept.model.cpds[0].format.values[0] == -math.inf
    assert raised.before < kept.before
    assert raised.before - raised.after <= raised.table_bound


def test_rows_of_probability_zero_choose_nothing():
    net = zoo.sprinkler()
    data = Dataset(net.variables, None, np.array([[0, 0, 0], [0, 0, 1]]))  # the second is impossible
    with pytest.raises(TinybayesError, match="rows of probability zero; smooth the network"):
        tie(net, "auto", data=data)
    result = tie(net, 3, data=data)
    assert (result.before, result.after) == (-math.inf, -math.inf)
    assert math.isfinite(tie(net, "auto", data=data, zeros=1e-3).after)


def test_counts_draw_the_levels_to_what_is_used():
    variable = Variable("x", tuple(range(4)))
    net = BayesNet((variable,), None, (zoo.cpd([0.1, 0.2, 0.3, 0.4]),))
    data = Dataset((variable,), None, np.repeat([0, 3], [8, 1])[:, None])
    weights, logs = np.array([9, 1, 1, 2]), np.log([0.1, 0.2, 0.3, 0.4])
    levels = tie(net, 2, counts=data).model.cpds[0].format.values
    assert levels == pytest.approx([logs[0], np.average(logs[1:], weights=weights[1:])], abs=1e-6)
    assert tie(net, 1, counts=data).model.cpds[0].format.values == pytest.approx([np.average(logs, weights=weights)])


def test_quantised_networks_can_be_tied_too():
    net, data, drawn = random_case(23, zeros=0)
    cpds = [zoo.cpd(np.exp(c.log_parameters), c.parents, c.tree, Fixed(3, 3)) for c in net.cpds]
    fixed = BayesNet(net.variables, net.target, tuple(cpds))
    result = tie(fixed, 4, data=data)
    assert result.before == pytest.approx(mean_log(fixed, drawn, data.weight), abs=1e-9)
    assert result.before - result.after <= result.table_bound


def test_bad_requests_are_refused():
    net, data, _ = random_case(29)
    for levels in (0, -3, 1, distinct(net) + 1):
        with pytest.raises(TinybayesError, match=rf"levels: expected 2 to {distinct(net)} levels \(one of them"):
            tie(net, levels)
    for levels in ("many", 2.5, True):
        with pytest.raises(TinybayesError, match="a number of levels, or 'auto'"):
            tie(net, levels)
    with pytest.raises(TinybayesError, match="data to choose the levels by"):
        tie(net, "auto")
    with pytest.raises(TinybayesError, match="levels: expected"):
        tie(net, "auto", data=data, candidates=[])
    for zeros in (0, 1.0, -0.1, "smooth"):
        with pytest.raises(TinybayesError, match="zeros: expected 'keep' or a probability"):
            tie(net, 3, zeros=zeros)
    with pytest.raises(TinybayesError, match="data: expected rows with a weight above zero, got none"):
        tie(net, 3, data=data.rows(slice(0)))
    other = Dataset((*data.variables[:-1], Variable("z", (0, 1))), data.target, data.X * 0, data.y)
    for name in ("data", "counts"):
        with pytest.raises(TinybayesError, match="the variables of the model"):
            tie(net, 3, **{name: other})


def test_parameters_beyond_the_levels_are_refused():
    """Levels are 32-bit floats; these became minus infinity, with a warning of NumPy's."""
    net = BayesNet((), Variable("y", (0, 1)), (CPD((), np.array([[-1e300, -1e3]]), Float(64)),))
    with pytest.raises(TinybayesError, match=r"expected log-parameters of magnitudes up to 1e\+38, got -1e\+300"):
        tie(net, levels=2)
