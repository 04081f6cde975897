"""Models as an Arduino library: a zip file that the Arduino IDE installs as it is."""

import io
import zipfile

from tinybayes.deploy.programs.c import header, source
from tinybayes.deploy.programs.circuit_interface import whole_circuit
from tinybayes.deploy.programs.circuit_plan import CircuitPlan, make_circuit_plan, refuse_circuit_options
from tinybayes.deploy.programs.density import density_program
from tinybayes.deploy.programs.density_plan import DensityPlan, is_density, make_density_plan, refuse_alarm
from tinybayes.deploy.programs.interface import refuse_classifier_options, whole_program
from tinybayes.deploy.programs.names import check_name, plain
from tinybayes.deploy.programs.plan import Plan, make_plan
from tinybayes.deploy.programs.program import Dialect, Program
from tinybayes.errors import error
from tinybayes.infer.alarm import Alarm
from tinybayes.infer.calibration import Calibration
from tinybayes.model import Circuit, Classifier

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time in a zip file: the same model gives the same bytes

PROPERTIES = """name={name}
version=1.0.0
author=tinybayes
maintainer=tinybayes
sentence={sentence}
paragraph={paragraph}
category=Data Processing
url=
architectures={architectures}
includes={name}.h
"""

SKETCH = """// {what}
#include <{name}.h>

// {of_row}
{kind} row[{width}] = {{{values}}};
{memory}
void setup() {{
    Serial.begin(115200);
}}

void loop() {{
    const unsigned long start = micros();
    const {result} answer = {name}_{function}(row{working});
    const unsigned long end = micros();
    Serial.print("{said} ");
    Serial.print(answer);
    Serial.print(" in ");
    Serial.print(end - start);
    Serial.println(" us");
    delay(1000);
}}
"""

# AVR boards keep tables in flash, which is another address space there; elsewhere constants are in flash anyway.
FLASH = """#ifdef __FLASH
#define TABLE const __flash
#else
#define TABLE const
#endif

"""

# AVR boards cannot hold larger arrays, nor reach more flash. The library's properties name the other boards, so that
# the Arduino IDE warns before it compiles.
AVR_ARRAY, AVR_TABLES = 2**15 - 1, 60 * 1024
TOO_LARGE = """#ifdef __AVR__
#error "This model has {what}; boards with an AVR have room for {room}. Take fewer bits or a smaller model."
#endif

"""
OTHERS = "sam,samd,esp32,esp8266,rp2040,mbed,mbed_nano,mbed_rp2040,mbed_giga,renesas_uno,stm32,nrf52,teensy"


def to_arduino(
    net: Classifier,
    *,
    name: str = "model",
    raw: str | None = None,
    note: str = "",
    gaps: bool = True,
    query: str | None = None,
    arithmetic: str | None = None,
    calibration: Calibration | None = None,
    alarm: Alarm | None = None,
    extras: bool = True,
    form: str | None = None,
) -> dict[str, bytes]:
    """Write a model as an Arduino library, with an example sketch; the code is that of `to_c`.

    A model that is too large for boards with an AVR refuses to compile for one, and the Arduino IDE warns before. The
    same model always gives the same bytes.
    """
    dialect = Dialect(check_name(name), f"{name}_", table="TABLE")
    if name.lower().startswith("arduino"):
        remedy = "names that begin so are kept for official libraries: choose another"
        raise error("a name that does not begin with arduino", repr(name), where="name", remedy=remedy)
    plan: Plan | CircuitPlan | DensityPlan
    if isinstance(net, Circuit) and is_density(net, query):
        refuse_classifier_options(calibration=calibration, form=form)
        plan = make_density_plan(net, raw, gaps=gaps, arithmetic=arithmetic, alarm=alarm)
        program = density_program(plan, dialect, note, extras=extras)
    elif isinstance(net, Circuit):
        refuse_classifier_options(calibration=calibration, form=form)
        refuse_alarm(alarm)
        plan = make_circuit_plan(net, raw, gaps=gaps, query=query, arithmetic=arithmetic)
        program = whole_circuit(plan, dialect, note, extras=extras)
    else:
        refuse_circuit_options(query=query, arithmetic=arithmetic)
        refuse_alarm(alarm)
        plan = make_plan(net, raw, gaps=gaps, form=form)
        program = whole_program(plan, dialect, note, calibration, extras=extras)
    large = _too_large(program)
    files = {
        "library.properties": PROPERTIES.format(
            name=name,
            sentence=program.facts[0],
            paragraph=" ".join([*program.facts[1:], *(["Too large for boards with an AVR."] if large else [])]),
            architectures=OTHERS if large else "*",
        ),
        "keywords.txt": _keywords(program, dialect),
        f"src/{name}.h": header(program, dialect),
        f"src/{name}.c": source(program, dialect, large + FLASH),
        "examples/Predict/Predict.ino": _sketch(plan, name),
    }
    return {f"{name}.zip": _zipped({f"{name}/{path}": content for path, content in files.items()})}


def _too_large(program: Program) -> str:
    """Return a check that refuses boards with an AVR, or nothing."""
    sizes = [array.values.nbytes for array in program.arrays]
    largest = max([*sizes, *(array.values.nbytes for array in program.optional_arrays)], default=0)
    if largest > AVR_ARRAY:
        return TOO_LARGE.format(what=f"a table of {largest:,} bytes", room=f"{AVR_ARRAY:,}")
    total = sum(sizes)  # of what a prediction needs
    return TOO_LARGE.format(what=f"{total:,} bytes of tables", room=f"{AVR_TABLES:,}") if total > AVR_TABLES else ""


def _keywords(program: Program, dialect: Dialect) -> str:
    """List the words that the editor colours."""
    functions = [f"{dialect.prefix}{function.name}\tKEYWORD2\n" for function in program.public]
    members = [f"{member}\tLITERAL1\n" for enumeration in program.enumerations for member in enumeration.members]
    return "".join(functions + members)


def _sketch(plan: Plan | CircuitPlan | DensityPlan, name: str) -> str:
    width, features = max(1, len(plan.variables)), plan.features
    row = "Measurements" if features.value else "The states of the features"
    if isinstance(plan, DensityPlan):
        function = "log_likelihood" if plan.alarm is None else "alarm"
        what = "Computes the log-likelihood of" if plan.alarm is None else "Looks for an anomaly in"
        what, said, kind = f"{what} a row again and again.", function.replace("_", "-"), "long"
    else:
        function, what = "predict", f"Predicts {plain(plan.target.name)!r} of a row again and again."
        said, kind = "state" if isinstance(plan, CircuitPlan) else "class", "unsigned"
    memory = isinstance(plan, CircuitPlan | DensityPlan)
    return SKETCH.format(
        what=what,
        name=name,
        of_row=f"{row}, in the order of the header; put yours here.",
        kind=features.value or features.state,
        width=width,
        values=", ".join(["0"] * width),
        result=kind,
        function=f"{function}_raw" if features.value else function,
        memory=f"struct {name}_memory memory;\n" if memory else "",
        working=", &memory" if memory else "",
        said=said,
    )


def _zipped(files: dict[str, str]) -> bytes:
    """Pack files; the bytes depend neither on the time nor on the machine."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, _EPOCH)
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            archive.writestr(entry, content.encode("ascii"))
    return out.getvalue()
