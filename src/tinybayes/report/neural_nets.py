"""Quantised neural networks for the terminal."""

from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table

from tinybayes.cost import model_cost
from tinybayes.model import NeuralNet
from tinybayes.report.console import bytes_text, variables_table


def describe_net(net: NeuralNet) -> dict[str, Any]:
    """Return the inputs and the layers of a network in plain values."""
    layers = [
        {
            "kind": "convolution" if layer.convolution else "dense",
            "inputs": list(shape),
            "units": layer.units,
            "weights": layer.codes.size,
            "bits": int(layer.bits),
            "activation": layer.activation,
        }
        for layer, shape in zip(net.layers, net.shapes, strict=True)
    ]
    states = int((net.inputs.state >= 0).sum())
    return {"inputs": {"states": states, "numbers": len(net.inputs) - states}, "layers": layers}


def net_card(net: NeuralNet, *, limit: int = 20) -> RenderableType:
    """Describe a network: its variables, its layers, its price.

    Parameters
    ----------
    net
        The network.
    limit
        How many variables to list; the rest are counted.
    """
    facts, cost = describe_net(net), model_cost(net)
    layers = Table(title="Layers", title_justify="left")
    for heading in ("layer", "inputs", "units", "weights", "bits", "activation"):
        layers.add_column(heading, justify="left" if heading in ("layer", "activation") else "right")
    for layer in facts["layers"]:
        inputs = " x ".join(map(str, layer["inputs"]))
        sizes = (f"{layer['units']:,}", f"{layer['weights']:,}", str(layer["bits"]))
        layers.add_row(layer["kind"], inputs, *sizes, layer["activation"])
    price = Table(title="Price", title_justify="left", show_header=False)
    price.add_row("memory", f"{bytes_text(cost.bits)} ({cost.bits:,} bits)")
    price.add_row("parameters", f"{cost.parameters:,}")
    price.add_row("a prediction", f"{cost.multiplications:,} multiply-accumulates, {cost.additions:,} additions")
    price.add_row("largest sum", f"{np.log2(max(net.reach) + 1) + 1:.1f} bits")
    return Group(variables_table(net, limit), "", layers, "", price)
