"""The families of models that a search tries, one module for each kind, and the dictionary of all."""

from tinybayes.errors import error
from tinybayes.search.families.circuit import CIRCUIT
from tinybayes.search.families.closed_form import CLOSED_FORM, TIED
from tinybayes.search.families.family import Family, Listed, Sampled, Setting, Trained
from tinybayes.search.families.nets import CONV, DENSE
from tinybayes.search.families.tables import NAIVE, SUBSET, TAN
from tinybayes.search.families.trees import BOOSTED, FOREST, TREE
from tinybayes.search.views import Views

__all__ = [
    "FAMILIES",
    "Family",
    "Listed",
    "Sampled",
    "Setting",
    "Trained",
    "describe",
    "family_of",
    "parse_families",
]

FAMILIES: dict[str, Family] = {  # of the sampled ones those that compile quickly first
    family.name: family
    for family in (BOOSTED, DENSE, CONV, TAN, NAIVE, SUBSET, TREE, FOREST, CLOSED_FORM, TIED, CIRCUIT)
}


def family_of(setting: Setting) -> Family:
    """Return the family of a setting."""
    return FAMILIES[setting["family"]]


def describe(setting: Setting) -> str:
    """Name a model plainly."""
    columns = setting.get("columns")
    return family_of(setting).describe(setting) + (
        "" if columns is None else f", {columns} column{'s' if columns > 1 else ''}"
    )


def parse_families(text: str | None, views: Views) -> list[Family]:
    """Return the families to try: those named in a text with commas, or all that the table allows."""
    if not text:
        return [family for family in FAMILIES.values() if family.possible(views)]
    names = dict.fromkeys(name.strip() for name in text.split(","))
    for name in names:
        if name not in FAMILIES:
            raise error(f"some of {', '.join(FAMILIES)}", repr(name), where="families")
        if not FAMILIES[name].possible(views):
            remedy = "give the image's rows and columns, or leave the family out"
            raise error("images", f"{len(views.by_name['mdlp'].seen.variables)} features", where=name, remedy=remedy)
    return [FAMILIES[name] for name in names]
