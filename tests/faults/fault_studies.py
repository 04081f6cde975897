"""The store of a search, looked at with Optuna alone: which trials there are, and whether any is lost or doubled."""

import json
import warnings
from collections import Counter
from pathlib import Path
from typing import Any


def study_of(place: Path, url: str | None = None) -> Any:
    """Open the study of a search, in a database or in its directory, or return None where it has not begun one."""
    import optuna
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    if url is not None:
        storage: Any = RDBStorage(url)
    elif (place / "study.db").exists():
        storage = RDBStorage(f"sqlite:///{place}/study.db")
    elif (place / "search.journal").exists():
        storage = JournalStorage(JournalFileBackend(str(place / "search.journal")))
    else:
        return None
    names = optuna.study.get_all_study_names(storage)
    mine = [name for name in names if url is None or name.endswith(f" {place.name}")]
    return optuna.load_study(study_name=mine[0], storage=storage) if mine else None


def trials_of(place: str, url: str | None = None) -> list[dict[str, Any]]:
    """Return what is stored of every trial."""
    study = study_of(Path(place), url)
    if study is None:
        return []
    return [
        {
            "number": t.number,
            "state": t.state.name,
            "values": t.values,
            "run": t.user_attrs.get("run"),
            "owner": t.user_attrs.get("owner"),
        }
        for t in study.get_trials()
    ]


def study_problems(place: str, before: list[dict[str, Any]] | None, url: str | None = None) -> list[str]:
    """Say what is wrong with a resumed search: a finished trial that changed or is gone, or one that was done twice."""
    trials = trials_of(place, url)
    after = {trial["number"]: trial for trial in trials}
    finished = [trial for trial in before or [] if trial["state"] == "COMPLETE"]
    problems = [f"trial {t['number']} is lost or changed" for t in finished if after.get(t["number"]) != t]
    return problems + doubled(trials) + unfinished(trials, before or []) + missing(Path(place), trials)


def doubled(trials: list[dict[str, Any]]) -> list[str]:
    """Say which runs were stored more than once."""
    keys = Counter(trial["run"]["key"] for trial in trials if trial["state"] == "COMPLETE")
    return [f"run {key} was stored {count} times" for key, count in keys.items() if count > 1]


def unfinished(trials: list[dict[str, Any]], before: list[dict[str, Any]]) -> list[str]:
    """Trials that the killed search had under way are failed by the next one; those without an owner after a minute."""
    problems = [f"trial {t['number']} is still running" for t in trials if t["state"] == "RUNNING" and t["owner"]]
    if [trial["number"] for trial in trials] != list(range(len(trials))):
        problems.append("numbers of trials are missing")
    if len(trials) < len(before):
        problems.append("there are fewer trials than before")
    return problems


def missing(place: Path, trials: list[dict[str, Any]]) -> list[str]:
    """Every stored run has its model, and is once in the front's file."""
    runs = [trial["run"] for trial in trials if trial["state"] == "COMPLETE"]
    files = [run["key"] for run in runs if run["saved"] and not (place / "trials" / f"{run['key']}.tb").exists()]
    problems = [f"run {key} has no model" for key in files]
    told = Counter(model["id"] for model in json.loads((place / "front.json").read_text())["models"])
    if told != Counter({run["key"] for run in runs}):
        problems.append(f"front.json has {sum(told.values())} runs, the store {len(runs)}")
    return problems


def front_problems(place: str) -> list[str]:
    """Say which of the files of a search that stand there cannot be read."""
    problems = []
    for name in ("front.json", "progress.json", "live.json"):
        path = Path(place, name)
        try:
            if path.exists():
                json.loads(path.read_text())
        except ValueError as problem:
            problems.append(f"{name}: {problem}")
    front = Path(place, "front.json")
    if front.exists():
        files = [model["file"] for model in json.loads(front.read_text())["models"] if model["file"]]
        problems += [f"{name} is named but not there" for name in files if not Path(place, name).exists()]
    return problems
