"""Bayesian networks with counted tables: in fixed point, or tied to a few levels."""

from tinybayes.model import Dataset, Fixed
from tinybayes.search.families.family import Learned, Listed, Setting, learned

STRUCTURES = ("naive", "chow-liu")


class ClosedForm(Listed):
    """Counted tables in fixed point."""

    def learn(self, rows: Dataset, setting: Setting, patience: float) -> Learned:
        """Count, and take the format of so many bits with the fewest errors on the training rows."""
        from tinybayes.compress import quantize
        from tinybayes.infer import evaluate
        from tinybayes.learn import learn_classifier

        net = learn_classifier(rows, structure=setting["structure"])
        nets = [quantize(net, Fixed(integer, setting["bits"] - integer)) for integer in range(1, 7)]
        return learned(setting, min(nets, key=lambda candidate: evaluate(candidate, rows).error))

    def shown_as(self, setting: Setting) -> str:
        """Show it as the family that trains the same structure by gradient."""
        return "naive" if setting["structure"] == "naive" else "tan"


class Tied(Listed):
    """Counted tables whose entries share a few levels."""

    def learn(self, rows: Dataset, setting: Setting, patience: float) -> Learned:
        """Count, and tie."""
        from tinybayes.compress import tie
        from tinybayes.learn import learn_classifier

        return learned(setting, tie(learn_classifier(rows, structure=setting["structure"]), setting["levels"]).model)


CLOSED_FORM = ClosedForm(
    "closed-form",
    {"view": ("mdlp", "coarse"), "structure": STRUCTURES, "bits": (2, 3, 4, 6, 8)},
    "{structure} in closed form, {bits} bits",
)
TIED = Tied(
    "tied",
    {"view": ("mdlp",), "structure": STRUCTURES, "levels": (4, 8, 16, 32)},
    "{structure}, {levels} levels",
)
