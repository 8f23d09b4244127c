"""How the operators of peers are timed: over cold weights, and the median of several samples, as Halite's benches do."""

import itertools
import json
import statistics
import time

COLD_BYTES = 256 << 20


def cold_copies(rows, size):
    """How many copies of weights of `size` bytes are used in turn: `cold_copies` of benches/src/lib.rs."""
    return min(max(-(-COLD_BYTES // size), 1), 64) if rows <= 32 else 1


def timed(step, copies=1, calls=1, samples=7, at_least=0.05):
    """Microseconds of one call, the median and the least of `samples` that each take `at_least` seconds.

    `step(copy)` uses one of the copies, each in turn, and makes `calls` calls.
    """
    turns = itertools.cycle(range(copies))
    for copy in range(copies):
        step(copy)

    def sample(steps):
        start = time.perf_counter()
        for _ in range(steps):
            step(next(turns))
        return time.perf_counter() - start

    steps = 1
    while (took := sample(steps)) < at_least:
        # A little more than needed, so that a faster sample is long enough too.
        steps = max(steps + 1, int(steps * min(at_least * 1.2 / max(took, 1e-9), 10)))
    found = []
    while len(found) < samples:
        took = sample(steps)
        if took >= at_least:
            found.append(took / steps / calls * 1e6)
        else:
            steps += steps // 8 + 1
    return statistics.median(found), min(found)


def say(**values):
    """One line of JSON."""
    print(json.dumps({k: round(v, 2) if isinstance(v, float) else v for k, v in values.items()}), flush=True)
