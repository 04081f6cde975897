"""What the processes of a search hold in memory: python benchmarks/search_memory.py.

A worker is asked before it has done anything, after it has learned trees, and after it has trained networks with JAX,
one kind after another; it gives memory back after each (tinybayes/search/memory.py). Nothing is in JAX's cache on disk.
RSS counts pages of libraries for each process; the memory of its own is what one more process takes. Linux only.
Workers load this file as well: what only the first process needs is imported in functions.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tinybayes.search.workers import Processes

if TYPE_CHECKING:
    from tinybayes.search.families import Setting
    from tinybayes.search.views import Views

RESULTS = Path(__file__).parent / "results" / "search_memory.json"
STEPS = 500  # of training
LATER = ("naive", "conv", "tied")  # of other shapes: JAX keeps the programs of all


def megabytes(process: int | str) -> dict[str, float]:
    """Return what a process holds."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:]
    size = {name: int(rest.split()[0]) / 1000 for name, _, rest in (line.partition(":") for line in lines)}
    own = size["Private_Clean"] + size["Private_Dirty"]
    return {"rss": round(size["Rss"]), "own": round(own)}


def drawn(name: str, views: "Views") -> "Setting":
    """Return a setting of a family."""
    from tinybayes.search.budget import Budget
    from tinybayes.search.families import FAMILIES, Sampled, Trained
    from tinybayes.search.study import Store

    family = FAMILIES[name]
    if not isinstance(family, Sampled):
        return family.settings_for(views, Budget())[0]
    with TemporaryDirectory() as directory:
        store = Store(Path(directory), None, {}, Budget(), 0)
        fixed = {"taught": False} if isinstance(family, Trained) else {}
        setting = {**store.ask(name, family.space(views), fixed)[1], "seed": 1}
    cut = family.fitted(setting, views, Budget())
    assert cut is not None
    return cut


def main() -> None:
    """Measure this process and a worker, and write the figures."""
    from harness import provenance
    from sklearn.datasets import load_digits

    from tinybayes.search.families.family import Effort
    from tinybayes.search.prepare import make_views

    views = make_views(load_digits(as_frame=True).frame, "target")
    settings = {name: drawn(name, views) for name in ("tree", "boosted", "tan", "dense", *LATER)}
    found = {"the process that searches, with the table": megabytes("self")}
    crew = Processes(views, 1)
    crew._pool.submit(len, ()).result()
    (worker,) = crew._pool._processes
    found["a worker with the table"] = megabytes(worker)
    for again in ("", " again"):
        for name, setting in settings.items():
            crew.submit([setting], Effort(STEPS, 1.0)).result()
            found[f"a worker after a model of the family {name}{again}"] = megabytes(worker)
    status = Path(f"/proc/{worker}/status").read_text()
    peak = round(int(status.split("VmHWM:")[1].split()[0]) / 1000)
    crew.close()
    for name, sizes in found.items():
        print(f"{name}: {sizes['rss']} MB, {sizes['own']} MB of its own")
    print(f"the most of the worker at any time: {peak} MB")
    document = {"provenance": provenance(["jax", "numba", "numpy"]), "megabytes": found, "worker_peak": peak}
    RESULTS.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
