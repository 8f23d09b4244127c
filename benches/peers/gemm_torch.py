"""The INT8 products of torch. Each of `operators` prepares (M, N, K, copies) and gives (step, copies in turn, calls a step)."""

import warnings

import torch

# That quantised tensors are to go is known.
warnings.filterwarnings("ignore", category=UserWarning)


def data(m, n, k):
    generator = torch.Generator().manual_seed(1)
    x = torch.rand(m, k, generator=generator) * 2 - 1
    w = torch.randint(-127, 128, (n, k), dtype=torch.int8, generator=generator)
    return x, w


def check(out, x, w, scale, tolerance):
    """The first element: INT8 rounding of the activations allows 3 % of sqrt(K), as in `linear.rs`."""
    expected = float((x[0].double() * w[0].double()).sum()) * scale
    got = float(out[0, 0])
    assert abs(got - expected) <= tolerance, f"{got} instead of {expected}"


def rounded(x):
    return (x * 127).round().to(torch.int8)


def int_mm(m, n, k, copies):
    """I8 x I8 to I32, the weights laid out N x K as a linear layer has them."""
    x, w = data(m, n, k)
    q, out = rounded(x), torch.empty(m, n, dtype=torch.int32)
    weights = [w.clone().t() for _ in range(copies)]
    torch._int_mm(q, weights[0], out=out)
    check(out, q, w, 1, 0)
    return lambda copy: torch._int_mm(q, weights[copy], out=out), copies, 1


def int_mm_kn(m, n, k, copies):
    """The same with weights laid out K x N."""
    x, w = data(m, n, k)
    q, out = rounded(x), torch.empty(m, n, dtype=torch.int32)
    weights = [w.t().contiguous() for _ in range(copies)]
    torch._int_mm(q, weights[0], out=out)
    check(out, q, w, 1, 0)
    return lambda copy: torch._int_mm(q, weights[copy], out=out), copies, 1


def dynamic(engine):
    """Dynamic quantised linear: F32 in and out, weights per channel and packed, activations quantised per tensor."""

    def prepare(m, n, k, copies):
        x, w = data(m, n, k)
        torch.backends.quantized.engine = engine
        scales, zeros = torch.full((n,), 1 / 127), torch.zeros(n, dtype=torch.int64)
        quantized = torch._make_per_channel_quantized_tensor(w, scales, zeros, 0)
        packed = [torch.ops.quantized.linear_prepack(quantized, None) for _ in range(copies)]
        run = torch.ops.quantized.linear_dynamic
        check(run(x, packed[0]), x, w, 1 / 127, 0.03 * k**0.5)
        return lambda copy: run(x, packed[copy]), copies, 1

    return prepare


def qlinear(m, n, k, copies):
    """oneDNN's linear that torch.compile chooses: U8 x packed I8 to F32, the activations quantised already."""
    x, w = data(m, n, k)
    q = (x * 127 + 128).round().clamp(0, 255).to(torch.uint8)
    scales, zeros = torch.full((n,), 1 / 127), torch.zeros(n, dtype=torch.int64)
    packed = [torch.ops.onednn.qlinear_prepack(w.clone(), [m, k]) for _ in range(copies)]

    def step(copy):
        args = (q, 1 / 127, 128, packed[copy], scales, zeros, None, 1.0, 0, torch.float32, "none", [], "")
        return torch.ops.onednn.qlinear_pointwise(*args)

    check(step(0), x, w, 1 / 127, 0.03 * k**0.5)
    return step, copies, 1


def operators(threads):
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    return {
        "int_mm": int_mm,
        "int_mm_kn": int_mm_kn,
        "linear_dynamic/x86": dynamic("x86"),
        "linear_dynamic/onednn": dynamic("onednn"),
        "qlinear": qlinear,
    }
