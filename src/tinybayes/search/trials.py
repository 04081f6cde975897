"""Carrying out settings: rows in, models with their validation errors and prices out."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tinybayes.cost import model_cost
from tinybayes.errors import TinybayesError
from tinybayes.infer.scores import class_scores, normalize_scores
from tinybayes.model import BayesNet, Circuit, Cost, Dataset, Fixed, NeuralNet
from tinybayes.search.families import Setting
from tinybayes.search.views import Views

if TYPE_CHECKING:
    from tinybayes.learn.training.tables import TableConfiguration

Model = BayesNet | Circuit | NeuralNet


@dataclass(frozen=True, eq=False)
class Outcome:
    """One setting carried out.

    Parameters
    ----------
    setting
        What was run.
    model
        The model; None for the baselines of scikit-learn, which are only priced.
    error, loss
        Share of wrong labels and mean log loss on the validation rows.
    cost
        The price.
    history
        Pairs (epoch, validation error).
    seconds
        Its share of the time that the batch took.
    test_error
        Only where the test rows were asked for.
    """

    setting: Setting
    model: Model | None
    error: float
    loss: float
    cost: Cost
    history: tuple[tuple[int, float], ...] = ()
    seconds: float = 0.0
    test_error: float | None = None


def carry_out(
    views: Views, settings: Sequence[Setting], steps: int, *, patience: float = 20.0, final: bool = False
) -> list[Outcome]:
    """Carry out settings of one shape.

    Parameters
    ----------
    views
        The table.
    settings
        Settings of one shape.
    steps
        Mini-batches of those that are trained by gradient.
    patience
        Seconds that a circuit may grow.
    final
        Learn from all rows but the test rows, and measure on the test rows.

    Returns
    -------
    list of Outcome
        Of the settings that can be carried out, in their order.
    """
    began = time.perf_counter()
    family = settings[0]["family"]
    if family in ("fc", "cnn"):
        found = _nets(views, settings, steps, final)
    elif family in ("nb", "tan", "tan-learned"):
        found = _networks(views, settings, steps, final)
    else:
        found = []
        for setting in settings:
            with suppress(TinybayesError):  # such as more levels than a small model has parameters
                found.append(_listed(views, setting, patience, final))
    each = (time.perf_counter() - began) / len(settings)
    return [_measured(views, *item, final=final, seconds=each) for item in found]


def _measured(
    views: Views, setting: Setting, model: Any, cost: Cost | None, history: Any, *, final: bool, seconds: float
) -> Outcome:
    view = views.by_name[setting.get("view", "fine")]
    error, loss = quality(model, view.seen.rows(views.valid))
    tested = quality(model, view.test)[0] if final else None
    if cost is None:
        return Outcome(setting, model, error, loss, model_cost(model), history, seconds, tested)
    return Outcome(setting, None, error, loss, cost, history, seconds, tested)


def quality(model: Any, rows: Dataset) -> tuple[float, float]:
    """Return the share of wrong labels and the mean log loss."""
    assert rows.y is not None
    known = rows.rows(rows.y >= 0)
    assert known.y is not None
    if isinstance(model, BayesNet | Circuit | NeuralNet):
        log_p = normalize_scores(class_scores(model, known.X))
    else:
        p = np.zeros((len(known), int(known.target.cardinality if known.target else 0)))
        p[:, model.classes_] = model.predict_proba(known.X)
        log_p = np.log(np.maximum(p, 1e-12))
    wrong = float((log_p.argmax(axis=1) != known.y).mean())
    return wrong, float(-np.maximum(log_p[np.arange(len(known)), known.y], -30).mean())


def _nets(views: Views, settings: Sequence[Setting], steps: int, final: bool) -> list[tuple[Any, ...]]:
    from tinybayes.learn.training.nets import NetConfiguration, train_nets

    train, valid = views.rows("fine", all_seen=final)
    conv = settings[0]["family"] == "cnn"
    runs = [
        NetConfiguration(
            kind="conv" if conv else "dense",
            hidden=tuple(s["hidden"]),
            bits=s["bits"],
            activation=s["activation"],
            inputs="shared" if conv else s["inputs"],
            learning_rate=s["learning_rate"],
            label_smoothing=s["smoothing"],
            image_shape=views.image_shape if conv else None,
            seed=s["seed"],
        )
        for s in settings
    ]
    return _by_gradient(train_nets, (train, None if final else valid), runs, settings, steps)


def _networks(views: Views, settings: Sequence[Setting], steps: int, final: bool) -> list[tuple[Any, ...]]:
    from tinybayes.learn.training.tables import train_tables

    rows, valid = views.rows(settings[0]["view"], all_seen=final)
    runs = [_configuration(rows, setting) for setting in settings]
    return _by_gradient(train_tables, (rows, None if final else valid), runs, settings, steps)


def _by_gradient(
    train: Callable[..., Any],
    rows: tuple[Dataset, Dataset | None],
    runs: Sequence[Any],
    settings: Sequence[Setting],
    steps: int,
) -> list[tuple[Any, ...]]:
    """Train for about so many mini-batches, with ten looks at the validation rows."""
    from tinybayes.learn.training.options import TrainingOptions

    batch = 50 if len(rows[0]) < 5000 else 100
    epochs = max(1, math.ceil(steps / max(1, len(rows[0]) // batch)))
    found = train(
        rows[0], runs, TrainingOptions(epochs=epochs, batch_size=batch, every=max(1, epochs // 10)), validation=rows[1]
    )
    return [(s, r.net, None, r.history) for s, r in zip(settings, found, strict=True)]


def _configuration(rows: Dataset, setting: Setting) -> "TableConfiguration":
    from tinybayes.learn.closed_form.chow_liu import chow_liu
    from tinybayes.learn.closed_form.structures import naive_bayes
    from tinybayes.learn.training import candidates
    from tinybayes.learn.training.tables import TableConfiguration

    if setting["family"] == "tan-learned":
        space = candidates.subset(len(rows.variables), setting["k"], seed=setting["seed"])
    else:
        space = candidates.fixed(naive_bayes(rows) if setting["family"] == "nb" else chow_liu(rows))
    return TableConfiguration(
        candidates=space,
        lam=setting["lam"],
        gamma=setting["gamma"],
        learning_rate=setting["learning_rate"],
        size_penalty=setting.get("size_penalty", 0.0),
        sharing=float(setting.get("sharing", 0)),
        number_format=Fixed(setting["integer"], setting["bits"] - setting["integer"]),
        structure_noise=setting.get("noise", 0.0),
        seed=setting["seed"],
    )


def _listed(views: Views, setting: Setting, patience: float, final: bool) -> tuple[Any, ...]:
    train, _ = views.rows(setting.get("view", "fine"), all_seen=final)
    match setting["family"]:
        case "closed-form":
            return setting, _closed_form(train, setting), None, ()
        case "tied":
            from tinybayes.compress import tie
            from tinybayes.learn import learn_classifier

            net = learn_classifier(train, structure=setting["structure"])
            return setting, tie(net, setting["levels"]).net, None, ()
        case "circuit":
            from tinybayes.compress import tie_circuit
            from tinybayes.learn import learn_circuit

            assert train.y is not None
            whole = train.rows(np.flatnonzero((train.X >= 0).all(axis=1) & (train.y >= 0)))
            grown = learn_circuit(whole, edge_price=setting["edge_price"], seconds=patience)
            assert grown.circuit is not None
            return setting, tie_circuit(grown.circuit, setting["levels"]).circuit, None, ()
    return (setting, *_baseline(train, setting), ())


def _closed_form(train: Dataset, setting: Setting) -> BayesNet:
    """Learn by counting, and store in fixed point: of the formats of so many bits, the one with the fewest errors."""
    from tinybayes.compress import quantize
    from tinybayes.learn import learn_classifier

    net = learn_classifier(train, structure=setting["structure"])
    bits = setting["bits"]
    found = [quantize(net, Fixed(whole, bits - whole)) for whole in range(1, 7)]
    return min(found, key=lambda candidate: quality(candidate, train)[0])


def _baseline(train: Dataset, setting: Setting) -> tuple[Any, Cost]:
    """Fit a tree or a forest of scikit-learn on fine codes, and price it."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    assert train.y is not None
    rows = train.rows(train.y >= 0)
    leaves = setting["leaves"]
    if setting["family"] == "tree":
        model = DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0).fit(rows.X, rows.y)
        trees = [model]
    else:
        model = RandomForestClassifier(setting["trees"], max_leaf_nodes=leaves, random_state=0, n_jobs=1)
        trees = model.fit(rows.X, rows.y).estimators_
    return model, sum((tree_cost(tree.tree_, rows) for tree in trees), Cost())


def tree_cost(tree: Any, data: Dataset) -> Cost:
    """Price a decision tree that is stored node by node, the left child next to its parent.

    An inner node has a feature, a threshold and the place of its right child; a leaf has a class; one bit tells them
    apart. A prediction takes one operation a level, and a forest one more a tree for its vote.
    """
    assert data.target is not None
    inner = int((tree.children_left >= 0).sum())
    leaves = tree.node_count - inner
    widest = max(v.cardinality for v in data.variables)
    of_inner = _width(len(data.variables)) + _width(widest) + _width(tree.node_count)
    bits = inner * of_inner + leaves * _width(data.target.cardinality) + tree.node_count
    return Cost(bits=bits, parameters=3 * inner + leaves, additions=int(tree.max_depth) + 1, comparisons=tree.max_depth)


def _width(count: int) -> int:
    return max(1, (count - 1).bit_length())
