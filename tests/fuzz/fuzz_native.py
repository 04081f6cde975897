"""The native model file, of every kind of model, and the checkpoints of growing circuits."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from fuzz_networks import chosen, use_circuit, use_log_linear, use_network
from fuzz_readers import Mutant, Run
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

import zoo
from mutate import ModelFiles, change_json, change_tensor
from neural_nets import neural_net
from tinybayes.cost import model_cost
from tinybayes.deploy import load, save
from tinybayes.deploy.files.clauses import parse_clauses
from tinybayes.deploy.files.native import load_metadata
from tinybayes.infer import compile_circuit
from tinybayes.infer.neural_net import net_scores
from tinybayes.infer.trees import tree_scores
from tinybayes.learn.circuits.checkpoint import learn_circuit_resumable
from tinybayes.learn.circuits.options import CircuitOptions
from tinybayes.model import Codebook, Dataset, Fixed, Float, LogLinear, NeuralNet, TreeEnsemble, Variable
from tree_ensembles import tree_ensemble

FORMATS = [Float(32), Float(64), Fixed(2, 1), Codebook((-2.0, -1.0, 0.0)), Codebook((-1.0,))]


def _reader(models: Sequence[Any], use: Callable[[Any], None], same: Callable[[Any, Any], bool]) -> tuple[Mutant, Run]:
    from fuzz_harness import place

    directory = place()
    files = []
    for model in models:
        save(model, directory / "seed.tb", metadata={"note": [1, 2.5, None]})
        files.append((directory / "seed.tb").read_bytes())
    (directory / "seed.tb").unlink()
    directory.rmdir()

    def run(data: bytes, directory: Path) -> None:
        path = directory / "input.tb"
        with open(path, "wb") as file:
            file.write(data)
        model = load(path)
        load_metadata(path)
        if isinstance(model, type(models[0])):
            use(model)
            if chosen(data):
                save(model, directory / "again.tb")
                assert same(load(directory / "again.tb"), model)

    return ModelFiles(files).mutant, run


def networks() -> tuple[Mutant, Run]:
    rng = np.random.default_rng(2)
    models = [zoo.sprinkler(), zoo.tan(), zoo.tree_tan()]
    models += [zoo.random_net(rng, 4, formats=FORMATS, trees=True, target=target) for target in (True, False, True)]
    return _reader(models, use_network, lambda a, b: bool(a == b))


def circuits() -> tuple[Mutant, Run]:
    rng = np.random.default_rng(3)
    nets = [zoo.random_net(rng, 3, formats=[form], trees=True) for form in FORMATS]
    models = [zoo.hand_circuit(), *(compile_circuit(net) for net in nets), compile_circuit(zoo.sprinkler())]
    return _reader(models, use_circuit, lambda a, b: bool(a == b))


def log_linear() -> tuple[Mutant, Run]:
    rng = np.random.default_rng(4)
    models = [
        parse_clauses("variable w s r\nu = 0.5\nu: a | b\nu: b | !c\n-1.25: !a | w=r\nhard: w!=s | a"),
        LogLinear.from_bayes_net(zoo.sprinkler()),
        LogLinear.from_bayes_net(zoo.random_net(rng, 3, formats=FORMATS, trees=True)),
    ]
    return _reader(models, use_log_linear, lambda a, b: bool(a == b))


def nets() -> tuple[Mutant, Run]:
    models = [
        neural_net((3,), bits=4, states=[2, 3, 4]),
        neural_net((), bits=1, classes=2, states=[2, 2], inputs="one-hot"),
        neural_net((2, 2), bits=3, activation="sign", inputs="some", scaled=True, states=[3, 2, 4]),
        neural_net(((2,),), bits=2, image=(2, 3), states=[3] * 6),
    ]

    def use(net: NeuralNet) -> None:
        assert model_cost(net).bits >= 0
        top = np.array([[v.cardinality - 1 for v in net.variables], [0] * len(net.variables)], np.int32)
        assert np.abs(net_scores(net, top).astype(np.int64)).max() < 2**31

    def same(a: NeuralNet, b: NeuralNet) -> bool:
        codes = all(np.array_equal(x.codes, y.codes) for x, y in zip(a.layers, b.layers, strict=True))
        return codes and (a.variables, a.target, a.scale) == (b.variables, b.target, b.scale)

    return _reader(models, use, same)


def trees() -> tuple[Mutant, Run]:
    models = [
        tree_ensemble(3, leaves=4, states=[2, 3, 4], classes=2),
        tree_ensemble(1, leaves=3, kind="all", sets=1, states=[9, 2]),
        tree_ensemble(2, leaves=4, kind="votes", sets=0, symmetric=True, states=[3, 4]),
        tree_ensemble(2, leaves=1, values=2, start=False),
    ]

    def use(model: TreeEnsemble) -> None:
        assert model_cost(model).bits >= 0
        top = np.array([v.cardinality - 1 for v in model.variables], np.int32)
        assert np.abs(tree_scores(model, np.stack([top, 0 * top, 0 * top - 1]))).max() <= model.reach

    def same(a: TreeEnsemble, b: TreeEnsemble) -> bool:
        arrays = (
            (m.values, m.start, m.trees.threshold, m.trees.child, m.trees.missing, m.trees.members) for m in (a, b)
        )
        equal = all(np.array_equal(one, other) for one, other in zip(*arrays, strict=True))
        return equal and (a.variables, a.target, a.scale) == (b.variables, b.target, b.scale)

    return _reader(models, use, same)


def checkpoints() -> tuple[Mutant, Run]:
    """Checkpoints are taken up again, so that what they say goes through the growth itself."""
    from fuzz_harness import place

    rng = np.random.default_rng(5)
    a = rng.integers(0, 2, 60)
    X = np.column_stack([a, a ^ (rng.random(60) < 0.1), rng.integers(0, 3, 60), a & rng.integers(0, 2, 60)])
    variables = tuple(Variable(f"v{i}", tuple(range(int(k) + 1))) for i, k in enumerate(X.max(axis=0)))
    data = Dataset(variables, None, X.astype(np.int32), None, None)
    directory = place()
    options = {"seconds": 5.0, "edge_price": 0.02}
    learn_circuit_resumable(data, directory / "seed", CircuitOptions(**options))
    seed = (directory / "seed").read_bytes()
    (directory / "seed").unlink()
    directory.rmdir()
    tensors = load_tensors(seed)
    header = json.loads(seed[8 : 8 + int.from_bytes(seed[:8], "little")])["__metadata__"]

    def mutant(rng: Random) -> bytes:
        changed, named = dict(tensors), dict(header)
        if rng.random() < 0.2:
            about = json.loads(header["about"])
            change_json(rng, about)
            named["about"] = json.dumps(about)
        if rng.random() < 0.9:
            for _ in range(rng.choice((1, 1, 2))):
                change_tensor(rng, changed)
        made = save_tensors(changed, named)
        if rng.random() < 0.05:
            at = rng.randrange(len(made))
            made = made[:at] + rng.randbytes(1) + made[at + rng.choice((0, 1, 9)) :]
        return made

    def run(content: bytes, directory: Path) -> None:
        path = directory / "input.checkpoint"
        path.write_bytes(content)
        grown = learn_circuit_resumable(data, path, CircuitOptions(max_edges=200, **options))
        use_circuit(grown.circuit)

    return mutant, run
