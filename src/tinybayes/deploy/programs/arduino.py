"""Classifiers as an Arduino library: a zip file that the Arduino IDE installs as it is."""

import io
import math
import re
import zipfile

from tinybayes.deploy.programs._c.header import state_type
from tinybayes.deploy.programs._names import check_name
from tinybayes.deploy.programs._net_plan import NetPlan, net_plan
from tinybayes.deploy.programs._plan import Plan, plain, plan
from tinybayes.deploy.programs.c import to_c
from tinybayes.errors import error
from tinybayes.model import BayesNet, NeuralNet

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first time that zip files know: the same model gives the same bytes

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

void setup() {{
    Serial.begin(115200);
}}

void loop() {{
    const unsigned long start = micros();
    const unsigned label = {name}_{function}(row);
    const unsigned long end = micros();
    Serial.print("class ");
    Serial.print(label);
    Serial.print(" in ");
    Serial.print(end - start);
    Serial.println(" us");
    delay(1000);
}}
"""

# The tables of AVR boards stay in flash, which is another address space there; elsewhere constants are in flash anyway.
FLASH = """#ifdef __FLASH
#define TABLE const __flash
#else
#define TABLE const
#endif

"""


# AVR boards have no arrays, and no flash at the addresses that these are found with, above this. The others are said
# to the Arduino IDE, which then warns before it compiles.
AVR_ARRAY, AVR_TABLES = 2**15 - 1, 60 * 1024
TOO_LARGE = """#ifdef __AVR__
#error "This model has {what}; boards with an AVR have room for {room}. Take fewer bits or a smaller model."
#endif

"""
OTHERS = "sam,samd,esp32,esp8266,rp2040,mbed,mbed_nano,mbed_rp2040,mbed_giga,renesas_uno,stm32,nrf52,teensy"
BITS = {f"{kind}int{n}_t": n for kind in ("", "u") for n in (8, 16, 32)} | {"float": 32}


def to_arduino(
    net: BayesNet | NeuralNet, *, name: str = "model", raw: str = "float", note: str = ""
) -> dict[str, bytes]:
    """Write a classifier as an Arduino library, with an example sketch; the code is that of `to_c`.

    A model that is too large for boards with an AVR says so when it is compiled for one, and to the Arduino IDE.

    Parameters
    ----------
    net
        The classifier, or the neural net.
    name
        The name of the library and of its header; begins every public name.
    raw
        What ``predict_raw`` takes: ``"float"``, ``"int"`` (32 bits), or ``"none"`` for no such function.
    note
        A line for the comment at the top, such as the measured error.

    Returns
    -------
    dict of bytes
        The zip file by its name; the same model always gives the same bytes.
    """
    check_name(name)
    if name.lower().startswith("arduino"):
        remedy = "names that begin so are kept for official libraries: choose another"
        raise error("a name that does not begin with arduino", repr(name), where="name", remedy=remedy)
    found: Plan | NetPlan = net_plan(net) if isinstance(net, NeuralNet) else plan(net)
    texts = to_c(net, name=name, raw=raw, note=note)
    facts, large = found.facts(note), _too_large(texts[f"{name}.c"])
    about = " ".join([*facts[1:], *(["Too large for boards with an AVR."] if large else [])])
    architectures = OTHERS if large else "*"
    files = {
        "library.properties": PROPERTIES.format(
            name=name, sentence=facts[0], paragraph=about, architectures=architectures
        ),
        "keywords.txt": _keywords(texts[f"{name}.h"], name),
        f"src/{name}.h": texts[f"{name}.h"],
        f"src/{name}.c": _in_flash(texts[f"{name}.c"], large),
        "examples/Predict/Predict.ino": _sketch(found, name, texts[f"{name}.h"]),
    }
    return {f"{name}.zip": _zipped({f"{name}/{path}": content for path, content in files.items()})}


def _too_large(source: str) -> str:
    """Return what forbids boards with an AVR, as C text, or nothing."""
    arrays = re.findall(r"^static const (\w+|struct \{.*\}) \w+((?:\[\d+\])+) =", source, flags=re.MULTILINE)
    sizes = [_bytes(kind) * math.prod(int(n) for n in re.findall(r"\d+", shape)) for kind, shape in arrays]
    if max(sizes, default=0) > AVR_ARRAY:
        return TOO_LARGE.format(what=f"a table of {max(sizes):,} bytes", room=f"{AVR_ARRAY:,}")
    total = sum(sizes)
    return TOO_LARGE.format(what=f"{total:,} bytes of tables", room=f"{AVR_TABLES:,}") if total > AVR_TABLES else ""


def _bytes(kind: str) -> int:
    """Return the bytes of an entry, of a struct those of its fields."""
    fields = re.findall(r"(u?int\d+_t|float) ([\w, ]+);", kind)
    return sum(BITS[k] * len(names.split(",")) for k, names in fields) // 8 if fields else BITS[kind] // 8


def _in_flash(source: str, large: str) -> str:
    """Put the tables, and the pointers into them, into the address space of the flash memory."""
    source = re.sub(r"^static const ", "static TABLE ", source, flags=re.MULTILINE)
    source = re.sub(
        r"^( +)const (\w+ \*(?:plane|entry|end) = (?:plane|table|words))", r"\1TABLE \2", source, flags=re.M
    )
    source = re.sub(r"\bconst (\w+ \*words\b)", r"TABLE \1", source)
    include, rest = source.split("\n\n", 1)
    return f"{include}\n\n{large}{FLASH}{rest}"


def _keywords(header: str, name: str) -> str:
    """Tell the editor what to colour."""
    functions = re.findall(rf"\b({name}_\w+)\(", header)
    constants = re.findall(r"^    (\w+) = \d+,?$", header, flags=re.MULTILINE)
    return "".join([f"{f}\tKEYWORD2\n" for f in functions] + [f"{c}\tLITERAL1\n" for c in constants])


def _sketch(found: Plan | NetPlan, name: str, header: str) -> str:
    raw = re.search(rf"{name}_predict_raw\(const (\w+)", header)
    kind, function, values = state_type(found), "predict", ["0"] * len(found.variables)
    of_row = "The states of the features, in the order of the header; put yours here."
    if raw:
        kind, function, of_row = raw[1], "predict_raw", "Measurements, in the order of the header; put yours here."
    return SKETCH.format(
        what=f"Predicts {plain(found.target.name)!r} of a row again and again.",
        name=name,
        of_row=of_row,
        kind=kind,
        width=max(1, len(found.variables)),
        values=", ".join(values) or "0",
        function=function,
    )


def _zipped(files: dict[str, str]) -> bytes:
    """Pack files; neither the time nor the machine leaves a trace."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, _EPOCH)
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            archive.writestr(entry, content.encode("ascii"))
    return out.getvalue()
