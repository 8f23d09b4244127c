"""INT8 products of torch, onnxruntime and vLLM's CPU operators, with the weights' copies that `linear.rs` takes turns with.

    python gemm.py [--peers torch,onnxruntime,vllm] [--rows 1,8,...] [--shapes 4096x4096,...] [--ops NAME,...] [--threads 2]

prints lines of JSON {peer, op, m, n, k, copies, median_us, min_us}: M rows of activations with weights of N x K. The
operators, and what is in their time, are listed in README.md. Each is held to an answer first.
"""

import argparse
import os
import sys

import timing

ROWS = [1, 8, 32, 128, 512]
SHAPES = ["4096x4096", "11008x4096", "4096x11008", "1536x576", "576x1536"]
PEERS = {"torch": "gemm_torch", "onnxruntime": "gemm_onnxruntime", "vllm": "gemm_vllm"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default="torch,onnxruntime")
    parser.add_argument("--rows", default=",".join(map(str, ROWS)))
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--ops", default="")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    # Read by OpenMP when it is loaded.
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    only = set(filter(None, options.ops.split(",")))
    failed = False
    for peer in options.peers.split(","):
        module = __import__(PEERS[peer])
        ops = module.operators(options.threads)
        for shape in options.shapes.split(","):
            n, k = map(int, shape.split("x"))
            for m in map(int, options.rows.split(",")):
                copies = timing.cold_copies(m, n * k)
                for op, prepare in ops.items():
                    if only and op not in only:
                        continue
                    at = {"peer": peer, "op": op, "m": m, "n": n, "k": k, "copies": copies}
                    try:
                        step, copies_in_turn, calls = prepare(m, n, k, copies)
                        median, least = timing.timed(step, copies_in_turn, calls)
                    except Exception as error:
                        failed = True
                        print(at, f"{type(error).__name__}: {error}", file=sys.stderr)
                        continue
                    timing.say(**at, median_us=median, min_us=least)
                    del step
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
