"""The lines of `turns.sh`, as tables: each round's median in tokens/s, and Halite's share of each peer, pair by pair."""

import json
import statistics
import sys

found = {}
for line in open(sys.argv[1]):
    if line.strip():
        line = json.loads(line)
        found.setdefault(line["case"], {}).setdefault(line["program"], []).append(line)

for case, programs in found.items():
    first = next(iter(programs.values()))[0]
    print(f"\n{first['batch']} x ({first['prompt']} prompt, {first['generate']} generated), {first['threads']} threads\n")
    rounds = sorted({line["round"] for lines in programs.values() for line in lines})
    ours = [program for program in programs if program.startswith("halite")]
    shares = "".join(f" {our}: prefill, decode |" for our in ours)
    print(f"| program | prefill, tokens/s | decode, tokens/s |{shares}")
    print("|---|---|---|" + "---|" * len(ours))
    for program, lines in programs.items():
        cells = [program]
        for what in ("prefill", "decode"):
            rates = {line["round"]: f"{line[f'{what}_tokens_per_s']:,.0f}" for line in lines}
            cells.append(" / ".join(rates.get(round_, "-") for round_ in rounds))
        for our in ours:
            rates = []
            for what in ("prefill", "decode"):
                key = f"{what}_tokens_per_s"
                theirs = {line["round"]: line[key] for line in lines}
                pairs = [line[key] / theirs[line["round"]] for line in programs[our] if line["round"] in theirs]
                rates.append(f"{statistics.median(pairs):.2f}" if pairs else "-")
            cells.append(", ".join(rates))
        print("| " + " | ".join(cells) + " |")
