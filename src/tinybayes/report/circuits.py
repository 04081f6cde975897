"""Circuits and their answers for the terminal."""

from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from tinybayes.infer import is_decomposable, is_deterministic, is_smooth
from tinybayes.model import Circuit
from tinybayes.report.console import bytes_text, variables_table

_PROPERTIES = {"smooth": is_smooth, "decomposable": is_decomposable, "deterministic": is_deterministic}


def describe_circuit(circuit: Circuit) -> dict[str, Any]:
    """Return the sizes and the properties of a circuit in plain values."""
    kinds = np.bincount(circuit.kind, minlength=4).tolist()
    return {
        "nodes": circuit.n_nodes,
        "edges": circuit.n_edges,
        "parameters": len(circuit.table),
        "format": str(circuit.format),
        "leaves": {"parameters": kinds[0], "indicators": kinds[1]},
        "sums": kinds[2],
        "products": kinds[3],
        "properties": {name: bool(check(circuit)) for name, check in _PROPERTIES.items()},
    }


def circuit_card(circuit: Circuit, *, limit: int = 20) -> RenderableType:
    """Describe a circuit: its variables, its size, its properties.

    Parameters
    ----------
    circuit
        The circuit.
    limit
        How many variables to list; the rest are counted.
    """
    facts = describe_circuit(circuit)
    bits = len(circuit.table) * circuit.format.bits + circuit.format.shared_bits
    table = Table(title="Circuit", title_justify="left", show_header=False)
    table.add_row("edges", f"{facts['edges']:,}")
    leaves = f"{facts['leaves']['parameters']:,} parameters and {facts['leaves']['indicators']:,} indicators"
    inner = f"{facts['sums']:,} sums, {facts['products']:,} products"
    table.add_row("nodes", f"{facts['nodes']:,}: {inner}, leaves: {leaves}")
    table.add_row("parameters", f"{facts['parameters']:,} in {facts['format']}, {bytes_text(bits)}")
    for name, check in _PROPERTIES.items():
        answer = check(circuit)
        table.add_row(name, "yes" if answer else f"no: {answer.reason}")
    return Group(variables_table(circuit, limit), "", table)


def posterior_table(circuit: Circuit, known: np.ndarray, posterior: np.ndarray, *, limit: int = 50) -> Table:
    """List the posterior of every variable, the most probable state first.

    Parameters
    ----------
    circuit
        The circuit.
    known
        Codes of what is known, -1 elsewhere.
    posterior
        What `marginals` says.
    limit
        How many variables to list; the rest are counted.
    """
    table = Table(title="Posteriors", title_justify="left")
    for heading in ("variable", "state", "probability", "others"):
        table.add_column(heading, justify="right" if heading == "probability" else "left", overflow="fold")
    parts = np.split(posterior, circuit.first_state[1:-1])
    for node, part, code in list(zip(circuit.nodes, parts, known.tolist(), strict=True))[:limit]:
        order = np.argsort(-part, kind="stable")
        others = ", ".join(f"{node.states[k]} {part[k]:.4g}" for k in order[1:6]) + (", ..." if len(part) > 6 else "")
        mark = " [dim](known)[/dim]" if code >= 0 else ""
        top = int(order[0])
        table.add_row(escape(node.name), escape(str(node.states[top])) + mark, f"{part[top]:.6g}", escape(others))
    if len(circuit.nodes) > limit:
        table.add_row(f"[dim]... and {len(circuit.nodes) - limit:,} more[/dim]", "", "", "")
    return table
