"""BIF texts and the way there and back, for the tests of the format."""

from pathlib import Path

import numpy as np

from tinybayes.deploy.files.bif import read_bif, write_bif
from tinybayes.model import BayesNet

DOG = """// the rows of dog-out are out of order; its parents have 2 and 3 states
network "Dog problem" { property author = "a { b"; }
variable out { type discrete[2] { "in side" out }; property "position = (1, 2)" ; }
/* probabilities may come
   before the variables { */
probability ( out | bowel, family ) {
  (sick, none) 0.1, 0.9;
  (well, none) 0.2, 0.8; // a comment
  (well, two)  0.4, /* another; one */ 0.6;
  (sick, one)  0.05 0.95;
  (sick, two)  0, 1;
  (well, one)  0.3, 0.7;
}
variable bowel { type discrete [ 2 ] { well, sick }; }
variable family { property url = http://family.example ; type discrete [ 3 ] { none, one, two }; }
probability ( bowel ) { table 0.99, 1e-2; }
probability ( family ) { table .25, 0.25, 0.5; }
"""

SMALL = """network unknown {
}
variable a {
  type discrete [ 2 ] { yes, no };
}
variable b {
  type discrete [ 3 ] { <5, 5-12, 12+ };
}
probability ( a ) {
  table 0.1, 0.9;
}
probability ( b | a ) {
  (yes) 0.2, 0.3, 0.5;
  (no) 0.25, 0.25, 0.5;
}
"""


def put(tmp_path: Path, text: str, name: str = "net.bif") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def again(net: BayesNet, tmp_path: Path, **options: object) -> BayesNet:
    write_bif(net, tmp_path / "again.bif", **options)
    return read_bif(tmp_path / "again.bif")


def table(net: BayesNet, name: str) -> list[list[float]]:
    node = [variable.name for variable in net.nodes].index(name)
    return np.exp(net.cpds[node].log_parameters).round(12).tolist()
