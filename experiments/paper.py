"""The numbers of the papers, and the order and names in which the results page shows data and structures.

Test errors in percent, of Table 1 and section 4.5 of differentiable_tan: the best of all settings, chosen on test rows.
"""

DATA = ("letter", "satimage", "usps", "mnist")
LABELS = {
    "naive": "naive Bayes",
    "chow-liu": "Chow-Liu",
    "random": "TAN Random",
    "subset": "TAN Subset",
    "all": "TAN All",
    "heuristic": "TAN Heuristic",
    "order-free": "order-free TAN",
    "pseudo": "pseudo-TAN",
}
_COLUMNS = ("naive", "random", "chow-liu", "subset", "all", "heuristic", "pseudo")
_ERRORS = {
    "letter": (12.93, 10.66, 9.37, 8.73, 8.76, None, 7.98),
    "satimage": (10.83, 9.83, 9.91, 9.31, 9.39, None, None),
    "usps": (4.29, 2.65, 3.42, 2.10, None, 2.27, None),
    "mnist": (4.44, 4.38, 3.65, 3.53, None, 3.29, None),
}
TABLE1 = {
    (data, row): error
    for data, errors in _ERRORS.items()
    for row, error in zip(_COLUMNS, errors, strict=True)
    if error is not None
}
# Naive Bayes and Chow-Liu with closed-form parameters.
CLOSED_FORM = {"letter": (25.89, 15.23), "satimage": (17.95, 11.90), "usps": (13.11, 8.74), "mnist": (17.34, 7.03)}


def label(row: str) -> str:
    """Return the name of a row; what follows a comma says how it departs from its structure."""
    structure, comma, variant = row.partition(",")
    return LABELS.get(structure, structure) + comma + variant


def place(data: str, row: str) -> tuple[int, int, str]:
    """Return a sort key: data sets and structures in their order, variants after their structure."""
    structure = row.partition(",")[0]
    known = tuple(LABELS)
    return (
        DATA.index(data) if data in DATA else len(DATA),
        known.index(structure) if structure in known else len(known),
        row,
    )
