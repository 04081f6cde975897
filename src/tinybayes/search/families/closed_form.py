"""Bayesian networks with counted tables: in fixed point, or tied to a few levels."""

from tinybayes.model import Dataset, Fixed
from tinybayes.search.families.family import Learned, Listed, Setting, in_bits, learned

FAMILY_OF = {"naive": "naive", "chow-liu": "tan"}  # of a structure


class ClosedForm(Listed):
    """Counted tables in fixed point."""

    def settings(self) -> list[Setting]:
        """Try two codings, two structures and some numbers of bits."""
        return [
            {"family": self.name, "view": view, "structure": structure, "bits": bits}
            for view in ("mdlp", "coarse")
            for structure in FAMILY_OF
            for bits in (2, 3, 4, 6, 8)
        ]

    def learn(self, rows: Dataset, setting: Setting, patience: float) -> Learned:
        """Count, and take the format of so many bits with the fewest errors on the training rows."""
        from tinybayes.compress import quantize
        from tinybayes.infer import evaluate
        from tinybayes.learn import learn_classifier

        net = learn_classifier(rows, structure=setting["structure"])
        nets = [quantize(net, Fixed(integer, setting["bits"] - integer)) for integer in range(1, 7)]
        return learned(setting, min(nets, key=lambda candidate: evaluate(candidate, rows).error))

    def describe(self, setting: Setting) -> str:
        """Name structure and bits."""
        return f"{FAMILY_OF[setting['structure']]} in closed form, {in_bits(setting['bits'])}"

    def shown_as(self, setting: Setting) -> str:
        """Show it as the family that it is trained in more quickly."""
        return FAMILY_OF[setting["structure"]]


class Tied(Listed):
    """Counted tables whose entries share a few levels."""

    def settings(self) -> list[Setting]:
        """Try two structures and some numbers of levels."""
        return [
            {"family": self.name, "view": "mdlp", "structure": structure, "levels": levels}
            for structure in FAMILY_OF
            for levels in (4, 8, 16, 32)
        ]

    def learn(self, rows: Dataset, setting: Setting, patience: float) -> Learned:
        """Count, and tie."""
        from tinybayes.compress import tie
        from tinybayes.learn import learn_classifier

        return learned(setting, tie(learn_classifier(rows, structure=setting["structure"]), setting["levels"]).model)

    def describe(self, setting: Setting) -> str:
        """Name structure and levels."""
        return f"{FAMILY_OF[setting['structure']]}, {setting['levels']} levels"


CLOSED_FORM = ClosedForm("closed-form", "closed form")
TIED = Tied("tied", "tied parameters")
