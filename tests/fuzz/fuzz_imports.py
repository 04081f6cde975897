"""Trees of LightGBM and XGBoost: files that these libraries wrote, damaged."""

from pathlib import Path

import numpy as np
from fuzz_networks import _text, chosen
from fuzz_readers import Mutant, Run

from mutate import Corpus
from tinybayes.cost import model_cost
from tinybayes.deploy import load, save
from tinybayes.deploy.imports.lightgbm import read_lightgbm
from tinybayes.deploy.imports.xgboost import read_xgboost
from tinybayes.infer import class_scores

MODELS = Path(__file__).parents[1] / "deploy" / "files" / "models"
ROWS = np.array([-1, 0, 1])


def _trees(library: str, suffix: str, tokens: list[str]) -> tuple[Mutant, Run]:
    read = read_lightgbm if library == "lightgbm" else read_xgboost

    def use(path: Path, data: bytes) -> None:
        model = read(path)
        rows = np.minimum(ROWS[:, None], [v.cardinality - 1 for v in model.variables]).astype(np.int32)
        scores = class_scores(model, rows)
        assert np.isfinite(scores).all()
        assert model_cost(model).bytes > 0
        if chosen(data):
            save(model, path.with_suffix(".tb"))
            np.testing.assert_array_equal(class_scores(load(path.with_suffix(".tb")), rows), scores)

    files = sorted(path for path in MODELS.glob(f"{library}_*{suffix}") if ".rows" not in path.name)
    return _text(Corpus([path.read_bytes() for path in files], tokens), suffix, use)


def lightgbm() -> tuple[Mutant, Run]:
    tokens = ["Tree=0", "num_leaves=1", "num_cat=1", "cat_boundaries=0 1", "cat_threshold=4294967295", "=", "\n\n"]
    tokens += ["feature_infos=", "none", "[0:1]", "0:65535", "-1", "sigmoid:0", "average_output", "is_linear=1"]
    return _trees("lightgbm", ".txt", [*tokens, "pandas_categorical:[[1]]", "end of trees", "1e308", "nan", "inf"])


def xgboost() -> tuple[Mutant, Run]:
    tokens = ["[", "]", "{", "}", ",", ":", "[]", "{}", "null", "true", "-1", "0", "1", "65535", "1e308", "1e-320"]
    tokens += ['"c"', '"0"', '"categories":[1],', '"offsets":[0,1],', '"values":[97],', '"weight_drop":[1],', '"dart"']
    return _trees("xgboost", ".json", tokens)
