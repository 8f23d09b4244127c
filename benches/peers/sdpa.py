"""torch's scaled_dot_product_attention on the CPU: a causal prefill, and decode of a batch.

    python sdpa.py [--prompt 2048] [--batch 8] [--context 2048] [--threads 2]

prints lines of JSON. Prefill counts the products of the causal half; decode counts the keys and values once, whatever a
form reads. Forms, for 32 query heads on 8 KV heads of 128:
    gqa       the operator's own `enable_gqa`
    expanded  keys and values that lie in memory once a query head
    folded    decode only: the query heads that share a KV head as rows of one query
"""

import argparse
import os

import timing

HEADS, KV_HEADS, DIM = 32, 8, 128


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompt", type=int, default=2048)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    # Read by OpenMP when it is loaded.
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    import torch
    from torch.nn.functional import scaled_dot_product_attention as attention

    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    torch.manual_seed(1)

    def drawn(dtype, *dims):
        return (torch.rand(dims) * 2 - 1).to(dtype)

    def exact(q, k, v, sequence, head, row):
        """One row of the answer, in F64."""
        k, v = (x[sequence, head * KV_HEADS // HEADS, : row + 1].double() for x in (k, v))
        scores = k @ q[sequence, head].double() / DIM**0.5
        return torch.softmax(scores, 0) @ v

    def measure(form, dtype, step, got, expected, **what):
        error = (got.double() - expected).abs().max().item()
        assert error < (1e-5 if dtype == torch.float32 else 2e-2), f"{form}: {error} away"
        median, least = timing.timed(lambda _: step())
        rates = {name: count / median / 1e3 for name, count in what.pop("counts").items()}
        name = str(dtype).removeprefix("torch.")
        timing.say(peer="torch", op=form, dtype=name, **what, median_us=median, min_us=least, **rates)

    for dtype in (torch.float32, torch.bfloat16):
        n = options.prompt
        q, k, v = (drawn(dtype, 1, heads, n, DIM) for heads in (HEADS, KV_HEADS, KV_HEADS))
        wide = [x.repeat_interleave(HEADS // KV_HEADS, 1) for x in (k, v)]
        forms = {
            "gqa": lambda: attention(q, k, v, is_causal=True, enable_gqa=True),
            "expanded": lambda: attention(q, *wide, is_causal=True),
        }
        row = n // 2
        expected = exact(q[:, :, row], k, v, 0, HEADS - 1, row)
        for form, step in forms.items():
            counts = {"gflops": 4 * HEADS * DIM * n * (n + 1) / 2}
            measure(f"prefill/{form}", dtype, step, step()[0, -1, row], expected, tokens=n, counts=counts)

        batch, n = options.batch, options.context
        q = drawn(dtype, batch, HEADS, 1, DIM)
        k, v = (drawn(dtype, batch, KV_HEADS, n, DIM) for _ in range(2))
        wide = [x.repeat_interleave(HEADS // KV_HEADS, 1) for x in (k, v)]
        folded = q.view(batch, KV_HEADS, HEADS // KV_HEADS, DIM)
        forms = {
            "gqa": lambda: attention(q, k, v, enable_gqa=True),
            "expanded": lambda: attention(q, *wide),
            "folded": lambda: attention(folded, k, v).view(batch, HEADS, 1, DIM),
        }
        expected = exact(q[:, :, 0], k, v, batch - 1, HEADS - 1, n - 1)
        for form, step in forms.items():
            counts = {"gb_per_s": 2 * k.numel() * k.element_size()}
            what = {"batch": batch, "context": n, "counts": counts}
            measure(f"decode/{form}", dtype, step, step()[-1, -1, 0], expected, **what)


if __name__ == "__main__":
    main()
