"""Writes a Llama model of a .gguf file as a folder that vLLM loads.

    python model_folder.py MODEL.gguf FOLDER [--weights bf16|w8a8]

W8A8 is what compressed-tensors calls int-quantized: weights in INT8 with a scale a channel, activations quantised a token,
the output layer left in BF16, as Halite keeps it.
"""

import argparse
import json
import pathlib

import numpy
import torch
from gguf import GGUFReader
from gguf.quants import dequantize
from safetensors.torch import save_file

LAYER = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def name(gguf):
    parts = gguf.removesuffix(".weight").split(".")
    if parts[0] == "blk":
        return f"model.layers.{parts[1]}.{LAYER[parts[2]]}.weight"
    return TOP[parts[0]] + ".weight"


def halves_apart(weights, heads):
    """The file has the two elements that RoPE turns together side by side, the folder half a head apart."""
    rows = weights.shape[0] // heads
    return weights.reshape(heads, rows // 2, 2, -1).swapaxes(1, 2).reshape(weights.shape)


def quantized(weights):
    scales = weights.abs().amax(1, keepdim=True) / 127
    scales[scales == 0] = 1
    return (weights / scales).round().clamp(-127, 127).to(torch.int8), scales.to(torch.bfloat16)


def config(reader, tied, weights):
    def field(key, default=None):
        found = reader.get_field(f"llama.{key}")
        return default if found is None else found.contents()

    heads, width = field("attention.head_count"), field("embedding_length")
    text = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "torch_dtype": "bfloat16",
        "vocab_size": len(reader.get_field("tokenizer.ggml.tokens").data),
        "hidden_size": width,
        "intermediate_size": field("feed_forward_length"),
        "num_hidden_layers": field("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": field("attention.head_count_kv", heads),
        "head_dim": width // heads,
        "max_position_embeddings": field("context_length"),
        "rms_norm_eps": field("attention.layer_norm_rms_epsilon"),
        "rope_theta": field("rope.freq_base", 10000.0),
        "hidden_act": "silu",
        "tie_word_embeddings": tied,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    if weights == "w8a8":
        int8 = {"num_bits": 8, "type": "int", "symmetric": True}
        group = {
            "targets": ["Linear"],
            "weights": {**int8, "strategy": "channel", "dynamic": False},
            "input_activations": {**int8, "strategy": "token", "dynamic": True},
        }
        text["quantization_config"] = {
            "quant_method": "compressed-tensors",
            "format": "int-quantized",
            "quantization_status": "compressed",
            "config_groups": {"group_0": group},
            "ignore": ["lm_head"],
        }
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--weights", choices=["bf16", "w8a8"], default="bf16")
    options = parser.parse_args()
    reader = GGUFReader(options.model)
    text = config(reader, all(tensor.name != "output.weight" for tensor in reader.tensors), options.weights)
    tensors = {}
    for tensor in reader.tensors:
        if tensor.name == "rope_freqs.weight":
            raise SystemExit("rope_freqs.weight: positions that are scaled are not written")
        to = name(tensor.name)
        values = numpy.array(dequantize(tensor.data, tensor.tensor_type), dtype=numpy.float32)
        heads = {"q": "num_attention_heads", "k": "num_key_value_heads"}
        for short, key in heads.items():
            if to.endswith(f"{short}_proj.weight"):
                values = halves_apart(values, text[key])
        values = torch.from_numpy(numpy.ascontiguousarray(values))
        if options.weights == "w8a8" and "_proj." in to:
            tensors[to], tensors[to.replace(".weight", ".weight_scale")] = quantized(values)
        else:
            tensors[to] = values.to(torch.bfloat16)
    options.folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, options.folder / "model.safetensors", metadata={"format": "pt"})
    (options.folder / "config.json").write_text(json.dumps(text, indent=2))


if __name__ == "__main__":
    main()
