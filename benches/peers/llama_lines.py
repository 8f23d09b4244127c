"""llama-bench's or llama-batched-bench's lines of JSON (standard input) as one of the form that all peers have."""

import json
import pathlib
import statistics
import sys

model, threads = sys.argv[1:]
lines = [json.loads(line) for line in sys.stdin if line.startswith("{")]
if "pl" in lines[0]:
    prompt, generate, batch = (lines[0][key] for key in ("pp", "tg", "pl"))
    rates = {name: [line[key] for line in lines[1:]] for name, key in (("prefill", "speed_pp"), ("decode", "speed_tg"))}
else:
    prompt, generate = (sum(line[key] for line in lines) for key in ("n_prompt", "n_gen"))
    batch = 1
    rates = {"prefill" if line["n_prompt"] else "decode": line["samples_ts"] for line in lines}
said = {"peer": "llama.cpp", "weights": pathlib.Path(model).stem.rsplit("-", 1)[-1], "threads": int(threads)}
said |= {"prompt": prompt, "generate": generate, "batch": batch, "runs": len(rates["prefill"])}
for name, found in rates.items():
    said[f"{name}_tokens_per_s"] = round(statistics.median(found), 2)
    said[f"{name}_tokens_per_s_min"], said[f"{name}_tokens_per_s_max"] = round(min(found), 2), round(max(found), 2)
print(json.dumps(said))
