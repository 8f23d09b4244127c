#!/bin/sh
# llama.cpp on a .gguf file, in one line of JSON as the other peers write it:
#   llama.sh one MODEL.gguf    one sequence, 512 tokens of prompt, 128 generated: llama-bench
#   llama.sh many MODEL.gguf   32 sequences at once, 128 and 64: llama-batched-bench
# LLAMA is the folder of the programs, THREADS and RUNS what they say (2 and 3). Neither program samples: tokens are random.
set -eu
here=$(dirname "$0")
programs=${LLAMA:-${PEERS:-$HOME/.cache/halite-peers}/llama/build/bin}
threads=${THREADS:-2}
runs=${RUNS:-3}
[ $# -eq 2 ] || { sed -n '2,5s/^# *//p' "$0" >&2; exit 2; }
case $1 in
one)
    "$programs/llama-bench" -m "$2" -p 512 -n 128 -t "$threads" -r "$runs" -o jsonl
    ;;
many)
    # The first line warms up.
    turns=$(seq "$((runs + 1))" | sed 's/.*/32/' | paste -sd,)
    "$programs/llama-batched-bench" -m "$2" -c 8192 -b 2048 -ub 512 -npp 128 -ntg 64 -npl "$turns" \
        -t "$threads" -tb "$threads" --output-format jsonl
    ;;
*)
    echo "$1: one or many" >&2
    exit 2
    ;;
esac | python3 "$here/llama_lines.py" "$2" "$threads"
