"""vLLM's CPU backend on a folder of `model_folder.py`: prefill and decode, as `halite bench model` measures them.

    python vllm_bench.py FOLDER [--prompt 512] [--generate 128] [--batch 1] [--runs 5] [--threads 2] [--check]

prints one line of JSON. Prefill is the time until every prompt has its first token, decode the rest, until every prompt has
G tokens more. One run before the measured ones warms up. The engine runs in this process, eagerly (nothing is compiled).
`--check` instead prints the greedy continuation, in ids, of the ids that standard input holds.

What vLLM advises to load first is, where it is there: Intel's OpenMP (setup.sh installs it) and tcmalloc (Debian's
libtcmalloc-minimal4).
"""

import ctypes.util
import json
import os
import pathlib
import sys
import time

import rates


def preloaded():
    """Starts anew with what is to be loaded before anything else."""
    libraries = [pathlib.Path(sys.prefix) / "lib" / "libiomp5.so", ctypes.util.find_library("tcmalloc_minimal")]
    found = ":".join(str(library) for library in libraries if library and (os.sep not in str(library) or library.exists()))
    if "HALITE_PEERS_PRELOADED" not in os.environ and found:
        environment = {**os.environ, "LD_PRELOAD": found, "HALITE_PEERS_PRELOADED": found}
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)


def main():
    preloaded()
    checking = "--check" in sys.argv
    if checking:
        sys.argv.remove("--check")
    options = rates.options(__doc__, batched_tokens=4096)
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    os.environ["VLLM_LOGGING_STREAM"] = "ext://sys.stderr"
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    os.environ["VLLM_CPU_KVCACHE_SPACE"] = "1"
    os.environ["VLLM_CPU_OMP_THREADS_BIND"] = f"0-{options.threads - 1}" if options.threads > 1 else "0"
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["VLLM_NO_USAGE_STATS"] = "1"
    import torch
    import vllm

    config = json.loads((pathlib.Path(options.model) / "config.json").read_text())
    weights = "w8a8" if "quantization_config" in config else "bf16"
    model = vllm.LLM(
        model=options.model,
        dtype="bfloat16",
        enforce_eager=True,
        skip_tokenizer_init=True,
        enable_prefix_caching=False,
        max_model_len=2048,
        max_num_seqs=max(options.batch, 8),
        max_num_batched_tokens=options.batched_tokens,
        disable_log_stats=True,
    )
    print("threads:", torch.get_num_threads(), file=sys.stderr)
    engine = model.llm_engine

    def answers(prompts, tokens):
        """Seconds till each prompt has its first token, seconds after, tokens after, and the answers."""
        sampling = vllm.SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True, detokenize=False)
        start = time.perf_counter()
        for number, prompt in enumerate(prompts):
            engine.add_request(str(number), {"prompt_token_ids": prompt}, sampling)
        found, first = {}, None
        while engine.has_unfinished_requests():
            for output in engine.step():
                found[output.request_id] = list(output.outputs[0].token_ids)
            if first is None and len(found) == len(prompts):
                first, at_first = time.perf_counter(), sum(map(len, found.values()))
        end = time.perf_counter()
        assert all(len(answer) == tokens for answer in found.values()), found
        return first - start, end - first, tokens * len(prompts) - at_first, found

    if checking:
        _, _, _, found = answers([[int(word) for word in sys.stdin.read().split()]], 16)
        print(*next(iter(found.values())))
    else:
        prompts = rates.prompts(options).tolist()
        rates.report("vllm", weights, options, lambda: answers(prompts, options.generate + 1)[:3])


if __name__ == "__main__":
    main()
