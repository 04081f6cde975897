"""The page of the documentation that tells which faults were tried and what became of them."""

INTRO = """# Faults tried

*Made by `python tests/faults/run.py`; do not edit.* Each fault was brought about for real, on small data, and the files
were looked at afterwards by their readers. A command that is refused something ends with exit code 2 and one line that
begins with `error:`; what was there before stays as it was. Files are written under a temporary name and renamed when
they are complete; what a killed command leaves under such a name is removed by the next one that writes there.

Kills, signals and full disks meet commands in forked processes that have everything imported; so that they meet all
phases within seconds, searches train for fewer steps there, and checkpoints are written more often. The other
faults meet commands as they are. Faults may have been tried on different days, and on a machine with other work to do.
"""


def page(document: dict) -> str:
    """Return the page."""
    versions = ", ".join(f"{name} {value}" for name, value in document["versions"].items())
    lines = [INTRO, "| fault | tried | expected | outcome |", "|---|---:|---|---|"]
    for fault in document["faults"].values():
        seen = "; ".join(f"{what}: {count}" for what, count in fault["seen"].items())
        outcome = f"**{fault['outcome']}**" + (f" ({seen})" if seen else "")
        if fault["problems"]:
            outcome += f": {fault['problems'][0]}"
        cells = (fault["what"], str(fault["tried"]), fault["expected"], outcome)
        lines.append("| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |")
    about = (
        f"Seed {document['seed']}, Python {document['python']}, {versions}; {document['system']}; {document['date']}."
    )
    return "\n".join([*lines, "", about, ""])
