"""What the peers' model benchmarks share: options, prompts, and the rates that `halite bench model` tells."""

import argparse
import statistics

import numpy
import timing

# Ids that are words in the default model, not control tokens.
WORDS = range(1000, 49000)


def options(text, **more):
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    numbers = {"prompt": 512, "generate": 128, "batch": 1, "runs": 5, "threads": 2}
    for name, default in {**numbers, **more}.items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(default), default=default)
    return parser.parse_args()


def prompts(options):
    """Random, always the same, and none begins as another does."""
    random = numpy.random.default_rng(1)
    return random.integers(WORDS.start, WORDS.stop, (options.batch, options.prompt), dtype=numpy.int64)


def report(peer, weights, options, run):
    """`run` gives the seconds of prefill and of decode, and the tokens of decode."""
    run()
    runs = [run() for _ in range(options.runs)]
    prefill = [options.batch * options.prompt / first for first, _, _ in runs]
    decode = [tokens / rest for _, rest, tokens in runs]
    values = {"peer": peer, "weights": weights, "threads": options.threads}
    values |= {name: getattr(options, name) for name in ("prompt", "generate", "batch", "runs")}
    for name, rates in (("prefill", prefill), ("decode", decode)):
        values[f"{name}_tokens_per_s"] = statistics.median(rates)
        values[f"{name}_tokens_per_s_min"], values[f"{name}_tokens_per_s_max"] = min(rates), max(rates)
    timing.say(**values)
