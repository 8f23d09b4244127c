#!/bin/sh
# Halite and its peers in turn on the default model: `turns.sh ROUNDS [PEER...]`
#   HALITE   the program (default: halite)          WEIGHTS  its --weights, in turn too (default: w8a8)
#   PEERS    where setup.sh put the peers           CASES    one, many or both (default: "one many")
#   THREADS  2                                      RUN      a command to put in front of each, such as nice
#   RECORD   a file for the lines of JSON; those that it has are kept (default: a new one)
#   RUNS     measured runs of each (default: 5, and 3 of llama.cpp)
# PEER: llama-q8_0 llama-q4_0 llama-f16 openvino-q8_0 vllm-bf16 vllm-w8a8 (default: all that are installed).
# One is 512 tokens of prompt and 128 generated; many is 32 sequences at once of 128 and 64.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
PEERS=${PEERS:-$HOME/.cache/halite-peers}
export PEERS THREADS="${THREADS:-2}"
models=$PEERS/models
lines=${RECORD:-$(mktemp)}
[ $# -ge 1 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
rounds=$1
shift
if [ $# -eq 0 ]; then
    [ ! -d "$PEERS/llama/build" ] || set -- llama-q8_0 llama-q4_0 llama-f16
    [ ! -d "$PEERS/openvino" ] || set -- "$@" openvino-q8_0
    [ ! -d "$models/smollm2-135m-bf16" ] || set -- "$@" vllm-bf16 vllm-w8a8
fi

sizes() { [ "$1" = one ] && echo "--prompt 512 --generate 128 --batch 1" || echo "--prompt 128 --generate 64 --batch 32"; }

# One measurement of one program. What it writes elsewhere than on standard output is shown where it fails.
measure() {
    program=$1 case=$2
    more="$(sizes "$case") --threads $THREADS --runs ${RUNS:-5}"
    case $program in
    halite-*) set -- "${HALITE:-halite}" bench model smollm2-135m $more --weights "${program#*-}" --json ;;
    llama-*) set -- "$here/llama.sh" "$case" "$models/smollm2-135m-${program#*-}.gguf" ;;
    openvino-*) set -- "$PEERS/openvino/bin/python" "$here/openvino_genai_bench.py" \
        "$models/smollm2-135m-${program#*-}.gguf" $more ;;
    vllm-*) set -- "$PEERS/torch/bin/python" "$here/vllm_bench.py" "$models/smollm2-135m-${program#*-}" $more ;;
    *) echo "$program: no such peer" >&2; exit 2 ;;
    esac
    if ! ${RUN:-} "$@" >"$lines.out" 2>"$lines.err"; then
        tail -n 20 "$lines.err" >&2
        echo "$program: failed" >&2
        return 0
    fi
    sed -n '/^{/,$p' "$lines.out" | tr -d '\n' | sed "s/^ *{/{\"program\": \"$program\", \"case\": \"$case\", \"round\": $at, /" >>"$lines"
    echo >>"$lines"
}

for round in $(seq "$rounds"); do
    at=$(date +%s)
    for case in ${CASES:-one many}; do
        for weights in ${WEIGHTS:-w8a8}; do measure "halite-$weights" "$case"; done
        for peer; do measure "$peer" "$case"; done
    done
    echo "round $round of $rounds is done: $lines" >&2
done
rm -f "$lines.out" "$lines.err"
python3 "$here/medians.py" "$lines"
