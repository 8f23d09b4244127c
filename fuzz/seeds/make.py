"""Sound inputs to start fuzzing from, out of the fixtures of the tests: `python3 fuzz/seeds/make.py`."""

import json
import shutil
import struct
from pathlib import Path

HERE = Path(__file__).parent
FIXTURES = HERE.parent.parent / "engine" / "tests" / "fixtures"
BORDER = b"\n=====\n"


def seed(target, name, *files):
    folder = HERE / target
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(BORDER.join(files))


def gguf_string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def gguf_model():
    """A file of one layer, with all keys that a model is made from."""
    hidden, heads, ffn, vocabulary = 4, 2, 4, 8
    keys = {
        "general.architecture": "llama",
        "general.name": "seed",
        "llama.block_count": 1,
        "llama.context_length": 16,
        "llama.embedding_length": hidden,
        "llama.feed_forward_length": ffn,
        "llama.attention.head_count": heads,
        "llama.attention.head_count_kv": 1,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.attention.sliding_window": 4,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": ["a", "b", "c", "d", "ab", "cd", "e", "<end>"],
        "tokenizer.ggml.merges": ["a b", "c d"],
        "tokenizer.ggml.eos_token_id": 7,
        "tokenizer.chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}",
    }
    shapes = {
        "token_embd.weight": (hidden, vocabulary),
        "output_norm.weight": (hidden,),
        "blk.0.attn_norm.weight": (hidden,),
        "blk.0.attn_q.weight": (hidden, hidden),
        "blk.0.attn_k.weight": (hidden, 2),
        "blk.0.attn_v.weight": (hidden, 2),
        "blk.0.attn_output.weight": (hidden, hidden),
        "blk.0.ffn_norm.weight": (hidden,),
        "blk.0.ffn_gate.weight": (hidden, ffn),
        "blk.0.ffn_up.weight": (hidden, ffn),
        "blk.0.ffn_down.weight": (ffn, hidden),
    }
    out = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(keys))
    for key, value in keys.items():
        out += gguf_string(key)
        if isinstance(value, str):
            out += struct.pack("<I", 8) + gguf_string(value)
        elif isinstance(value, list):
            out += struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(gguf_string, value))
        elif isinstance(value, float):
            out += struct.pack("<If", 6, value)
        else:
            out += struct.pack("<II", 4, value)
    data = b""
    for name, shape in shapes.items():
        data += b"\0" * (-len(data) % 32)
        out += gguf_string(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        out += struct.pack("<IQ", 0, len(data))
        count = 1
        for dim in shape:
            count *= dim
        data += struct.pack(f"<{count}f", *[0.5] * count)
    return out + b"\0" * (-len(out) % 32) + data


def safetensors_header(names):
    entries, at = {}, 0
    for name, dtype, shape, size in names:
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    return json.dumps(entries).encode(), b"\1" * at


def main():
    for folder in HERE.iterdir():
        if folder.is_dir():
            shutil.rmtree(folder)
    seed("gguf", "model.gguf", gguf_model())
    seed("gguf", "tiny.gguf", (FIXTURES / "gguf" / "tiny.gguf").read_bytes())

    header, data = safetensors_header([("a", "F32", [2, 2], 16), ("b", "BF16", [3], 6), ("c", "I8", [2], 2)])
    seed("safetensors", "one-file", b"", header, data, b"")
    second, second_data = safetensors_header([("d", "F16", [2], 4)])
    index = {"metadata": {"total_size": 28}, "weight_map": {}}
    index["weight_map"] |= {name: "model.safetensors" for name in "abc"} | {"d": "b.safetensors"}
    shard = struct.pack("<Q", len(second)) + second + second_data
    seed("safetensors", "sharded", json.dumps(index).encode(), header, data, shard)

    texts = ["the salt of the earth", "<begin>한국어 \U0001f469\u200d\U0001f680 e\u0301\x00\r\n  12345<end>"]
    for folder in sorted((FIXTURES / "models").iterdir()):
        if folder.is_dir():
            config = (folder / "config.json").read_bytes()
            seed("config", folder.name, config, (folder / "generation_config.json").read_bytes())
    folder = FIXTURES / "models" / "llama2"
    for number, text in enumerate(texts):
        files = [(folder / name).read_bytes() for name in ("tokenizer.json", "tokenizer_config.json")]
        seed("tokenizer", f"byte-level-{number}", *files, text.encode())

    templates = {
        "plain": "{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}\n{% endfor %}",
        "system": "{%- if messages[0]['role'] == 'system' -%}{{ messages[0].content }}{%- endif -%}"
        "{%- for m in messages[1:] -%}{{ bos_token + m['content'].strip() + eos_token }}{%- endfor -%}"
        "{% if add_generation_prompt %}{{ '<s>assistant' }}{% endif %}",
        "macro": "{% macro say(x, n=2) %}{% for i in range(n) %}{{ x }}{{ loop.index }}{% endfor %}{% endmacro %}"
        "{% set ns = namespace(count=0) %}{% for m in messages %}{% set ns.count = ns.count + 1 %}"
        "{{ say(m.content, ns.count) }}{% endfor %}",
        "tools": "{{ messages | tojson(indent=2) }}{% if tools is defined %}{{ tools | tojson }}{% endif %}",
        "raise": "{% if messages | length > 3 %}{{ raise_exception('too long') }}{% endif %}{{ strftime_now('%d %b %Y') }}",
        "methods": "{{ messages[1].content.split(' ')[0].upper().replace('a', 'b').startswith('x') }}"
        "{{ messages | map(attribute='role') | join(', ') }}{{ 'a' ~ 1 ~ none }}",
    }
    for name, template in templates.items():
        seed("chat_template", name, template.encode(), texts[1].encode())

    message = {"role": "user", "content": "Hello"}
    chats = {
        "chat": {"model": "m", "messages": [message]},
        "chat-full": {
            "model": "m",
            "messages": [
                {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
                message,
                {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "1", "content": "4"},
            ],
            "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
            "temperature": 0.5,
            "top_p": 0.9,
            "max_completion_tokens": 8,
            "stop": ["\n", "한"],
            "seed": 7,
            "n": 2,
            "stream": True,
            "stream_options": {"include_usage": True},
        },
        "completion": {"model": "m", "prompt": "Hello", "max_tokens": 4, "echo": True, "logprobs": 1},
        "completion-ids": {"model": "m", "prompt": [[1, 2], [3]], "stop": "x", "best_of": 1, "suffix": None},
    }
    for name, body in chats.items():
        seed("request", name, json.dumps(body).encode())


if __name__ == "__main__":
    main()
