"""The W8A8 product of vLLM's CPU backend: activations quantised per token, then oneDNN's product with packed weights."""

import torch
from gemm_torch import check, data
from vllm import _custom_ops as ops
from vllm.platforms import current_platform


def scaled_mm(dtype):
    """Activations and answers of `dtype`; the quantising is in the time."""

    def prepare(m, n, k, copies):
        x, w = data(m, n, k)
        scales = torch.full((n, 1), 1 / 127)
        make = ops.create_onednn_scaled_mm
        handlers = [make(w.clone().t(), scales, dtype, True, False) for _ in range(copies)]
        given, out = x.to(dtype), torch.empty(m, n, dtype=dtype)

        def step(copy):
            q, q_scales, _ = ops.onednn_scaled_int8_quant(given)
            ops.onednn_scaled_mm(handlers[copy], q, out, q_scales, None, None, None)

        step(0)
        # BF16 rounds the activations and the answer once more.
        looser = 1 if dtype == torch.float32 else 4
        check(out.float(), given.float(), w, 1 / 127, looser * 0.03 * k**0.5)
        return step, copies, 1

    return prepare


def operators(threads):
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    current_platform.import_kernels()
    return {"scaled_mm/f32": scaled_mm(torch.float32), "scaled_mm/bf16": scaled_mm(torch.bfloat16)}
