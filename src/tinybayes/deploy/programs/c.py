"""Models as C99: one header and one source file that need nothing but <stdint.h>."""

from tinybayes.deploy.programs.circuit_interface import whole_circuit
from tinybayes.deploy.programs.circuit_plan import make_circuit_plan, refuse_circuit_options
from tinybayes.deploy.programs.density import density_program
from tinybayes.deploy.programs.density_plan import is_density, make_density_plan, refuse_alarm
from tinybayes.deploy.programs.interface import refuse_classifier_options, whole_program
from tinybayes.deploy.programs.names import check_name
from tinybayes.deploy.programs.plan import make_plan
from tinybayes.deploy.programs.program import Dialect, Program, comment
from tinybayes.infer.alarm import Alarm
from tinybayes.infer.calibration import Calibration
from tinybayes.model import Circuit, Classifier

CLOSING = "Reentrant: no allocation, no writable statics, nothing but <stdint.h>."
INFINITY = "#ifndef INFINITY\n#define INFINITY (1e30F * 1e30F)\n#endif\n\n"
NOINLINE = """/* A function that is not inlined has all registers for itself, and is the same for all callers. */
#ifdef __GNUC__
#define {noinline} __attribute__((noinline))
#else
#define {noinline}
#endif

"""


def to_c(
    model: Classifier,
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
) -> dict[str, str]:
    """Write a classifier, a circuit, a neural net or trees as C99; the parameters are those of `tinybayes.export`.

    The code of a network in one `Fixed` format or one `Codebook` uses integers only, and its scores are those of
    `tinybayes.infer.integers.integer_log_joint`, bit for bit. Networks of floats are added up in 32-bit floats; the
    comment at the top bounds the difference. The code of a neural net uses integers only, and its scores are those of
    `tinybayes.infer.neural_net.net_scores`, bit for bit.

    With `gaps` a code that is not a state is missing, and the scores of a Bayesian network are in the finer unit of
    ``integer_log_joint(..., gaps=True)``; networks other than naive Bayes and forests of features take complete rows
    in any case. Without it rows must be complete, and the code is smaller.

    The code of trees uses integers only, and its scores are those of `tinybayes.infer.trees.tree_scores`, bit for bit.
    Where all tested features are intervals of numbers, raw values are compared as they are: ``scores`` and the other
    functions take them, and there is no encoder. The `form` is ``"nested"`` (comparisons in code: few instructions),
    ``"nodes"`` or, for symmetric trees, ``"levels"`` (tables and a loop: little flash); by default a single tree is
    nested, and several trees take the form with the least flash.

    The code of a neural net has the `form` ``"lanes"``, a function for each layer that adds several units at once, or
    ``"compact"``, one loop for all layers with less code and more instructions. By default dense nets of at most 768
    bytes of weights, 2,048 weights, and 128 inputs and hidden units are compact.

    The code of a circuit answers for one variable, `query` (by default the class), given any evidence on the others,
    as codes or as raw values: with the `arithmetic` ``"integer"`` bit for bit as
    `tinybayes.infer.integer_circuit.integer_posterior`, with ``"float"`` in 32-bit floats. The comment
    bounds the error.

    A circuit without a class, and without a `query`, is a density: its code gives the log-likelihood of a row, bit for
    bit as `tinybayes.infer.integer_density.integer_log_likelihood`, and with an `alarm` whether the row is an anomaly,
    as `tinybayes.infer.alarm.integer_alarm`. The comment bounds the error.
    """
    dialect = Dialect(check_name(name), f"{name}_")
    if isinstance(model, Circuit) and is_density(model, query):
        refuse_classifier_options(calibration=calibration, form=form)
        density = make_density_plan(model, raw, gaps=gaps, arithmetic=arithmetic, alarm=alarm)
        program = density_program(density, dialect, note, extras=extras)
    elif isinstance(model, Circuit):
        refuse_classifier_options(calibration=calibration, form=form)
        refuse_alarm(alarm)
        plan = make_circuit_plan(model, raw, gaps=gaps, query=query, arithmetic=arithmetic)
        program = whole_circuit(plan, dialect, note, extras=extras)
    else:
        refuse_circuit_options(query=query, arithmetic=arithmetic)
        refuse_alarm(alarm)
        program = whole_program(make_plan(model, raw, gaps=gaps, form=form), dialect, note, calibration, extras=extras)
    return {f"{name}.h": header(program, dialect), f"{name}.c": source(program, dialect)}


def header(program: Program, dialect: Dialect) -> str:
    """Write the header."""
    guard = dialect.macro("h")
    out = comment(*program.facts, CLOSING) + f"#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n\n"
    out += '#ifdef __cplusplus\nextern "C" {\n#endif\n\n'
    for constant in program.constants:
        doc = f"\n{comment(constant.doc)}" if constant.doc else ""
        out += f"{doc}#define {dialect.macro(constant.name)} {constant.value}\n"
    out += "\n" + "".join(enumeration.text() for enumeration in program.enumerations)
    out += f"{program.public_types}\n" if program.public_types else ""
    for function in program.public:
        out += f"{comment(function.doc)}{function.head(dialect, declared=True)};\n\n"
    return out + "#ifdef __cplusplus\n}\n#endif\n\n#endif\n"


def source(program: Program, dialect: Dialect, begin: str = "") -> str:
    """Write the source file; `begin` comes before the program."""
    out = comment(*program.facts, CLOSING) + f'#include "{dialect.name}.h"\n\n{begin}'
    out += INFINITY if program.infinities else ""
    out += NOINLINE.format(noinline=dialect.macro("noinline")) if program.noinline else ""
    out += f"{program.types}\n" if program.types else ""
    out += "".join(f"{array.shared(dialect)}\n" for array in program.tables)
    functions = (*program.functions, *program.optional)
    return out + "\n".join(function.text(dialect, program.tables) for function in functions)
