"""The INT8 products of onnxruntime. One graph holds a node for each copy of the weights, so that what a session's call
costs is shared by them, and every node writes to the same place. The weights are constants, which are packed once.
"""

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]


def session(nodes, initializers, inputs, outputs, threads):
    graph = helper.make_graph(nodes, "products", inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=OPSETS, ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Errors only: not every kind of node uses every constant.
    options.log_severity_level = 3
    # The nodes are those that optimisation arrives at; it would see that they read the same activations.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def prepare(kind, threads, m, n, k, copies):
    random = numpy.random.default_rng(1)
    x = random.uniform(-1, 1, (m, k)).astype(numpy.float32)
    w = random.integers(-127, 128, (k, n), dtype=numpy.int8)
    integers = kind == "MatMulInteger"
    given = (x * 127 + 128).round().clip(0, 255).astype(numpy.uint8) if integers else x
    out = numpy.empty((m, n), numpy.int32 if integers else numpy.float32)

    nodes, initializers, outputs = [], [], []

    def constant(name, value):
        initializers.append(numpy_helper.from_array(value, name))

    constant("zero", numpy.uint8(128))
    constant("scales", numpy.full(n, 1 / 127, numpy.float32))
    constant("zeros", numpy.zeros(n, numpy.int8))
    for copy in range(copies):
        weights, y = f"w{copy}", f"y{copy}"
        # Each is another matrix: packed weights that are alike are kept once.
        constant(weights, numpy.concatenate([w[:, :1], numpy.roll(w[:, 1:], copy, axis=1)], axis=1))
        outputs.append(helper.make_tensor_value_info(y, TensorProto.INT32 if integers else TensorProto.FLOAT, [m, n]))
        if integers:
            nodes.append(helper.make_node(kind, ["x", weights, "zero"], [y]))
        elif kind == "DynamicQuantizeMatMul":
            nodes.append(helper.make_node(kind, ["x", weights, "scales", "zeros"], [y], domain="com.microsoft"))
        else:
            q = [f"{part}{copy}" for part in ("q", "s", "z")]
            nodes.append(helper.make_node("DynamicQuantizeLinear", ["x"], q))
            given_to = [q[0], weights, q[1], "scales", q[2], "zeros"]
            nodes.append(helper.make_node("MatMulIntegerToFloat", given_to, [y], domain="com.microsoft"))

    element = TensorProto.UINT8 if integers else TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info("x", element, [m, k])]
    running = session(nodes, initializers, inputs, outputs, threads)
    binding = running.io_binding()
    binding.bind_input("x", "cpu", 0, given.dtype, given.shape, given.ctypes.data)
    for copy in range(copies):
        binding.bind_output(f"y{copy}", "cpu", 0, out.dtype, out.shape, out.ctypes.data)

    # What is bound lies in `given` and `out`, which the closure keeps.
    def step(_, held=(given, out)):
        running.run_with_iobinding(binding)

    step(0)
    sums = x[0].astype(numpy.float64) @ w[:, 0].astype(numpy.float64)
    exact = (given[0].astype(numpy.int64) - 128) @ w[:, 0].astype(numpy.int64) if integers else sums / 127
    tolerance = 0 if integers else 0.03 * k**0.5
    assert abs(float(out[0, 0]) - float(exact)) <= tolerance, f"{out[0, 0]} instead of {exact}"
    return step, 1, copies


def operators(threads):
    def of(kind):
        return lambda *sizes: prepare(kind, threads, *sizes)

    kinds = ["MatMulInteger", "DynamicQuantizeMatMul", "DynamicQuantizeLinear+MatMulIntegerToFloat"]
    return {kind: of(kind) for kind in kinds}
