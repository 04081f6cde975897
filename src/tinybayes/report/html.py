"""The report page: one self-contained HTML file without network requests.

The page is data and a viewer: Python writes one JSON object (positions of graphs, tables as base64 codes, shared
names once), and the scripts only show it. Each model gets a share of `LIMIT`; tables that do not fit are omitted and
counted. Scripts create elements and text, never markup, and the content security policy names their digests.
"""

import base64
import hashlib
import html
import json
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from tinybayes.cost import model_cost
from tinybayes.deploy import read_classifier
from tinybayes.deploy.programs.javascript import runner
from tinybayes.files import atomic_path
from tinybayes.infer.evaluate import page_figures
from tinybayes.infer.explain import explained_rows
from tinybayes.model import BayesNet, Circuit, Classifier, Dataset, TreeEnsemble
from tinybayes.report.cards import SHARE, model_card
from tinybayes.report.console import CORE, program_figures
from tinybayes.report.finite import finite
from tinybayes.report.front import checked_front, model_path, read_front
from tinybayes.report.trees import family_of
from tinybayes.search.titles import TITLES

LIMIT = 5_900_000  # bytes of a page
PARTS = (
    *("core", "plots", "front", "search", "hyper", "table", "graph", "heat", "odds", "model", "panel", "ask", "rows"),
    "main",
)
SCRIPTS = tuple(f"{part}.js" for part in PARTS)
_OF_MODEL = ("label", "settings", "validation_error", "test_error", "boards", "history")
LIBRARY = "vendor/plotly-basic.min.js"


def write_report(directory: Path | str, output: Path | str | None = None) -> Path:
    """Write the report page of a search.

    Parameters
    ----------
    directory
        The directory of the search, with ``front.json`` and the models it names.
    output
        The file; by default ``report.html`` in the directory.

    Returns
    -------
    Path
        The file that was written.
    """
    target = Path(directory) / "report.html" if output is None else Path(output)
    return _write(page_text(page_data(Path(directory))), target)


def page_data(directory: Path) -> dict[str, Any]:
    """Return the content of the page of a search in plain values."""
    front = read_front(directory)
    saved = [model for model in front["models"] if model["file"] is not None]
    saved.sort(
        key=lambda model: (model["id"] != front["chosen"], not model["on_front"], model["flash"] or model["bits"])
    )
    room = LIMIT - len(page_text({**front, "cards": {}}))
    cards: dict[str, dict[str, Any]] = {}
    paths = [model_path(directory, model["file"]) for model in saved]
    for number, (model, path) in enumerate(zip(saved, paths, strict=True)):
        card = model_card(read_classifier(path), share=min(room // (len(saved) - number), SHARE))
        room -= len(json.dumps(card))
        if room < 0:  # too many models: not even their graphs fit
            break
        cards[model["id"]] = card
    return _with_cards(front | {"directory": str(directory)}, cards)


def model_report(
    model: Classifier,
    dataset: Dataset | None,
    output: Path | str,
    *,
    command: str = "",
    metadata: dict[str, Any] | None = None,
    seen: bool = False,
) -> Path:
    """Write the report page of one model.

    Parameters
    ----------
    model
        The model.
    dataset
        Rows for the confusion matrix, the reliability curve and a few explanations; None omits them.
    output
        The file.
    command
        The command that made the model.
    metadata
        Further facts: ``title``, ``seed``, ``data``, ``provenance``, and of the model ``family``, ``label``,
        ``settings``, ``validation_error``, ``test_error``, ``boards`` and ``history``. The error on `dataset` is
        shown as the test error where none is given.
    seen
        Whether the model was learned from `dataset`: its error there is then called the training error.
    """
    known, cost = dict(metadata or {}), model_cost(model)
    family = known.get("family") or _family(model)
    entry: dict[str, Any] = {"id": "1", "family": family, "label": f"{TITLES.get(family, family)}, {cost}"}
    entry |= cost.to_dict() | program_figures(model) | {"on_front": True}
    entry |= {name: known[name] for name in _OF_MODEL if known.get(name) is not None}
    data: dict[str, Any] = {"features": len(model.variables)}
    if model.target is not None:
        data |= {"target": model.target.name, "classes": model.target.cardinality}
    if dataset is not None and model.target is not None:
        entry |= page_figures(model, dataset) | {"explanations": explained_rows(model, dataset)}
        confusion = entry["confusion"]
        right = sum(confusion[k][k] for k in range(len(confusion)))
        wrong = max(0.0, 1 - right / max(sum(map(sum, confusion)), 1e-300))
        if seen:
            entry["settings"] = {"training_error": f"{100 * wrong:.2f} %", **(entry.get("settings") or {})}
        else:
            entry.setdefault("test_error", wrong)
        data["rows"] = len(dataset)
    top = {"title": "One model and its price", "created": datetime.now(UTC).isoformat(timespec="seconds")}
    top |= {name: known[name] for name in ("title", "seed", "provenance", "created") if name in known}
    front = {**top, "command": command, "data": data | dict(known.get("data") or {}), "chosen": "1", "models": [entry]}
    front["budget"] = {"core": CORE}
    cards = {"1": model_card(model, share=LIMIT // 2)}
    return _write(page_text(_with_cards(checked_front(front), cards)), Path(output))


def _family(model: Classifier) -> str:
    if isinstance(model, Circuit):
        return "circuit"
    if isinstance(model, TreeEnsemble):
        return family_of(model)
    if not isinstance(model, BayesNet):
        return "conv" if model.layers[0].convolution else "dense"
    target = len(model.variables)
    return "tan" if any(p != target for cpd in model.cpds for p in cpd.parents) else "naive"


def _with_cards(front: dict[str, Any], cards: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Join the front and the cards; models over the same variables share one description of them."""
    variables: list[Any] = []
    for card in cards.values():
        nodes = card.pop("nodes")
        if nodes not in variables:
            variables.append(nodes)
        card["variables"] = variables.index(nodes)
    return {**front, "families": TITLES, "variables": variables, "cards": cards}


def write_page(front: dict[str, Any], output: Path) -> Path:
    """Write a page of figures without model files; `front` comes from `checked_front`."""
    return _write(page_text(_with_cards(front, {})), output)


def page_text(data: dict[str, Any], *, live: str = "", style: str = "") -> str:
    """Return the page that shows the result of `page_data`.

    `live` is a further script, with its CSS in `style`, for a page that our own server keeps up to date: it may ask
    that server, and shows new data through ``Tinybayes.update(data)``. It runs before the first data is shown, and its
    ``Tinybayes.started`` after that.

    Names come from tables and files of strangers. They reach the page only as JSON whose ``<``, ``>`` and ``&`` are
    escaped, scripts write them as text and never as markup, and the policy in the page runs no script but the two
    whose digests it names.
    """
    text = json.dumps(finite(data), allow_nan=False, separators=(",", ":"), default=str)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    parts = [runner(), *(page_part(name) for name in SCRIPTS)]
    script = "\n".join([*parts[:-1], live, parts[-1]])  # the last one shows the data
    policy = (
        "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
        f"script-src {_digest(page_part(LIBRARY))} {_digest(script)}" + ("; connect-src 'self'" if live else "")
    )
    # Split before substituting: inserted text may contain the other placeholders.
    blanks = {
        "TITLE": html.escape(str(data["title"])).encode(errors="replace").decode(),
        "POLICY": html.escape(policy, quote=True),
        "STYLE": page_part("page.css") + style,
        "DATA": text,
        "LIBRARY": page_part(LIBRARY),
        "SCRIPT": script,
    }
    pieces = page_part("template.html").split("@@")
    return "".join(blanks[piece] if number % 2 else piece for number, piece in enumerate(pieces))


@cache
def page_part(name: str, package: str = "tinybayes.report") -> str:
    """Return a file of the page with Unix line ends, so that digests match."""
    folder = files(package) / "_page"
    return folder.joinpath(*name.split("/")).read_text(encoding="utf-8").replace("\r\n", "\n")


def _digest(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _write(text: str, output: Path) -> Path:
    with atomic_path(output) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
    return output
