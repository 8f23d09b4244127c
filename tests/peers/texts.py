"""Makes what `engine/tests/text_peers.rs` expects, with the Python packages `tokenizers` and `transformers`.

    target/peers/python/bin/python tests/peers/texts.py

reads target/peers/tokenizers/NAME/tokenizer.json and tokenizer_config.json, and writes into target/peers/expected:
strings.json, NAME/ids.json, NAME/chats.json and templates.json.
"""

import datetime
import json
import os
import pathlib
import sys

# Everything is here; nothing is to be looked up.
os.environ["HF_HUB_OFFLINE"] = "1"

import jinja2
import tokenizers
import transformers
from transformers.utils import chat_template_utils

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from conversations import CONVERSATIONS, TEMPLATES, TOOLS
from strings import strings

PEERS = pathlib.Path(__file__).resolve().parents[2] / "target" / "peers"
NAMES = ["qwen3", "llama3", "deepseek_v3"]
# 29 February 2024, 13:05:09 UTC.
NOW = 1_709_211_909


def load(folder):
    """The tokenizer as the file says it, the same without added tokens, and that of `transformers`."""
    text = (folder / "tokenizer.json").read_text()
    data = json.loads(text)
    data["added_tokens"] = []
    bare = tokenizers.Tokenizer.from_str(json.dumps(data))
    return tokenizers.Tokenizer.from_str(text), bare, transformers.PreTrainedTokenizerFast.from_pretrained(folder)


def ids(folder):
    parsed, bare, framed = load(folder)
    for text in strings():
        found = parsed.encode(text, add_special_tokens=False).ids
        case = {"ids": found, "as_text": bare.encode(text, add_special_tokens=False).ids}
        case["decoded"] = parsed.decode(found, skip_special_tokens=True)
        case["prompt"] = parsed.encode(text, add_special_tokens=True).ids
        case["framed"] = framed(text, add_special_tokens=True)["input_ids"]
        yield case


def outcome(render):
    """What a template writes, what it refuses with, or that it fails."""
    try:
        return {"text": render()}
    except jinja2.exceptions.TemplateError as error:
        refused = type(error) is jinja2.exceptions.TemplateError
        return {"refused": str(error)} if refused else {"failed": f"{type(error).__name__}: {error}"}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}


def chats(folder):
    tokenizer = load(folder)[2]
    for name, chat in CONVERSATIONS.items():
        case = {"name": name, **chat}
        case.setdefault("add_generation_prompt", True)
        options = dict(tools=chat.get("tools"), add_generation_prompt=case["add_generation_prompt"])
        options |= chat.get("variables", {})
        case["expected"] = outcome(lambda: tokenizer.apply_chat_template(chat["messages"], tokenize=False, **options))
        if "text" in case["expected"]:
            case["ids"] = tokenizer.apply_chat_template(chat["messages"], return_dict=False, **options)
        yield case


class FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(NOW, datetime.timezone.utc)


def templates():
    chat_template_utils.datetime = FixedClock
    messages = CONVERSATIONS["turns"]["messages"]
    for template in TEMPLATES:
        render = lambda: chat_template_utils.render_jinja_template(
            [messages], tools=TOOLS, chat_template=template, add_generation_prompt=True, bos_token="<s>", eos_token="</s>"
        )[0][0]
        yield {"template": template, "expected": outcome(render)}


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, indent=0))


def main():
    expected = PEERS / "expected"
    write(expected / "strings.json", strings())
    conversation = {"messages": CONVERSATIONS["turns"]["messages"], "tools": TOOLS, "now": NOW}
    write(expected / "templates.json", conversation | {"cases": list(templates())})
    for name in NAMES:
        folder = PEERS / "tokenizers" / name
        write(expected / name / "ids.json", list(ids(folder)))
        write(expected / name / "chats.json", list(chats(folder)))
    print(f"{len(strings())} strings, {len(CONVERSATIONS)} conversations, {len(TEMPLATES)} templates in {expected}")


if __name__ == "__main__":
    main()
