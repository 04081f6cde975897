"""A user's act: raw rows of real tables, with gaps, through exported C, beside Python's labels of the same rows."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from c_host import labels_and_codes
from cases import whole
from circuit_host import CircuitCase, run_c
from tinybayes import export, learn_classifier, predict_codes, quantize, read_dataset, tie
from tinybayes.data.encode import as_texts, encode_frame
from tinybayes.deploy.programs.circuit_plan import make_circuit_plan
from tinybayes.deploy.programs.encoding import make_features
from tinybayes.infer import integer_posterior
from tinybayes.learn import learn_circuit
from tinybayes.model import Categories, Fixed
from tinybayes.model.encoding import LOWEST

TABLES = Path(os.environ.get("TINYBAYES_DATA", "nowhere")) / "tables"
NAMES = ("chess", "contraceptive", "crx", "german", "ionosphere", "marketing", "movement_libras", "mushroom")
NAMES += ("phoneme", "ring", "splice", "vowel")
FORMATS = {
    "fixed": lambda net: quantize(net, Fixed(4, 2)),
    "codebook": lambda net: tie(net, levels=12).model,
    "float": lambda net: net,
}
pytestmark = pytest.mark.skipif(not TABLES.is_dir(), reason="TINYBAYES_DATA has no directory tables")


def raw_rows(frame, features):
    """Rows as a device gets them: numbers, and the codes of other states; NaN or the lowest integer where missing."""
    columns = []
    for variable in features.variables:
        column = frame[variable.name]
        if isinstance(variable.encoding, Categories):
            code = {str(state): code for code, state in enumerate(variable.states)}
            columns.append([np.nan if text is None else code.get(text, np.nan) for text in as_texts(column)])
        else:
            columns.append(pd.to_numeric(column, errors="coerce").to_numpy(float))
    rows = np.array(columns, dtype=float).T
    return np.where(np.isnan(rows), LOWEST, rows) if features.raw == "int" else rows


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore::tinybayes.errors.TinybayesWarning")
@pytest.mark.parametrize("structure", [*whole("naive"), "chow-liu"])
@pytest.mark.parametrize("name", [*NAMES[::3], *whole(*NAMES[1::3], *NAMES[2::3])])
def test_every_row_gets_the_label_of_python(tmp_path, name, structure):
    train, test = (pd.read_csv(TABLES / f"{name}.{part}.csv.gz") for part in ("train", "test"))
    rng = np.random.default_rng(0)
    gaps = {column: test[column].astype(object).where(rng.random(len(test)) >= 0.05) for column in test.columns[:-1]}
    both = pd.concat([test.astype(object), test.assign(**gaps)], ignore_index=True)
    net = learn_classifier(read_dataset(train, target="label"), structure=structure)
    codes = encode_frame(both, net.variables)
    assert (codes < 0).any()
    for form, make in FORMATS.items():
        model = make(net)
        directory = tmp_path / form
        directory.mkdir()
        features = make_features(model.variables, None)
        rows = raw_rows(both, features)
        labels, seen = labels_and_codes(directory, export(model, name="m"), "m", model, rows, features.value)
        missing = np.iinfo(make_features(model.variables, None, gaps=True).state.removesuffix("_t")).max
        np.testing.assert_array_equal(np.where(seen == missing, -1, seen), codes)
        np.testing.assert_array_equal(labels, predict_codes(model, codes), err_msg=form)


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore::tinybayes.errors.TinybayesWarning")
@pytest.mark.parametrize("name", ["contraceptive", "vowel", *whole("german", "phoneme", "splice")])
def test_circuits_give_every_row_the_posterior_of_python(tmp_path, name):
    train, test = (pd.read_csv(TABLES / f"{name}.{part}.csv.gz") for part in ("train", "test"))
    rng = np.random.default_rng(0)
    gaps = {column: test[column].astype(object).where(rng.random(len(test)) >= 0.05) for column in test.columns[:-1]}
    both = pd.concat([test.astype(object), test.assign(**gaps)], ignore_index=True)
    learned = learn_circuit(read_dataset(train, target="label"), max_edges=1500).circuit
    for form, circuit in (("float", learned), ("tied", tie(learned, levels=16).model)):
        directory = tmp_path / form
        directory.mkdir()
        case = CircuitCase("m", circuit, raw_rows(both, make_circuit_plan(circuit).features))
        ((labels, possible, posterior, codes),) = run_c(directory, [case])
        np.testing.assert_array_equal(codes[:, :-1], encode_frame(both, circuit.variables))
        wanted, states = integer_posterior(circuit, codes, len(circuit.nodes) - 1)
        np.testing.assert_array_equal(posterior, wanted, err_msg=form)
        np.testing.assert_array_equal(labels, states)
        assert possible.all()
        assert (labels != predict_codes(circuit, codes[:, :-1])).sum() == 0
