"""Running the encoders of programs alone, without a model."""

import subprocess

import numpy as np

from c_host import build
from tinybayes.deploy.programs import micropython
from tinybayes.deploy.programs.encoder import encode_functions
from tinybayes.deploy.programs.onnx import Graph, encode_values
from tinybayes.deploy.programs.program import Dialect

MAIN = """
#include <stdio.h>
#include "encoder.h"
int main(void)
{{
    {value} v[{features}];
    {state} x[{features}];
    while (fread(v, sizeof v[0], {features}U, stdin) == {features}U) {{
        m_encode(v, x);
        fwrite(x, sizeof x[0], {features}U, stdout);
    }}
    return 0;
}}
"""


def codes_in_c(directory, features, values):
    """Codes of the compiled encoder; -1 where they are missing."""
    dialect, n = Dialect("m", "m_"), len(features.variables)
    functions = encode_functions(features, dialect)
    head = f"#include <stdint.h>\nvoid m_encode(const {features.value} value[{n}], {features.state} x[{n}]);\n"
    code = '#include "encoder.h"\n' + "\n".join(function.text(dialect) for function in functions)
    main = MAIN.format(value=features.value, state=features.state, features=n)
    program = build(directory, {"encoder.h": head, "encoder.c": code}, main)
    kind = np.float32 if features.raw == "float" else np.int32
    rows = np.ascontiguousarray(values, dtype=kind).tobytes()
    answer = subprocess.run([program], input=rows, capture_output=True, check=True).stdout
    codes = np.frombuffer(answer, dtype=features.state.removesuffix("_t")).reshape(values.shape).astype(np.int64)
    return np.where(codes == features.missing, -1, codes) if features.gaps else codes


def codes_in_micropython(directory, features, values):
    """Codes of the module, run by this Python."""
    module = {}
    exec("from struct import pack, unpack\n" + micropython.from_raw(features), module)
    return np.array([module["encode"](row) for row in values.tolist()])


def codes_in_onnx(directory, features, values):
    """Codes of the graph in onnxruntime."""
    import onnx
    import onnxruntime

    graph, helper = Graph(), onnx.helper
    codes = encode_values(graph, features)
    kind = onnx.TensorProto.FLOAT if features.raw == "float" else onnx.TensorProto.INT32
    nodes = [helper.make_node(op, taken, [made], **options) for op, taken, made, options in graph.nodes]
    built = helper.make_graph(
        nodes,
        "encoder",
        [helper.make_tensor_value_info("value", kind, ["rows", len(features.variables)])],
        [helper.make_tensor_value_info(codes, onnx.TensorProto.INT64, None)],
        [onnx.numpy_helper.from_array(array, key) for key, array in graph.constants.items()],
    )
    model = helper.make_model(built, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    given = np.asarray(values, dtype=np.float32 if features.raw == "float" else np.int32)
    return session.run(None, {"value": given})[0]
