"""A thousand texts that tokenizers get wrong: the same ones on every machine and with every Python."""

COUNT = 1000

PLAIN = [
    "", " ", "  ", "\n", "\r\n", "\t\t\n\n  x", "a", " a", "a ", "Hello, world!", "I'm you're we'll he'd I'VE it's",
    "0", "1234567890", "3.14159, -1e10", "x2y3", "٣٤٥ ४५ 一二三 Ⅷ ½ ²", "https://example.org/a?b=c&d=%20#e",
    "안녕하세요, 세계! 한국어 문장입니다.", "한글 ㄱㄴㄷ ㅏㅑ", "こんにちは世界。日本語の文章です。", "カタカナ ﾊﾝｶｸ", "々〆〇〻",
    "中文简体 中文繁體，標點。", "㐀䶿一龥龦鿿", "Привет, мир", "Γειά σου Κόσμε", "שלום עולם", "مرحبا بالعالم", "नमस्ते दुनिया",
    "สวัสดีชาวโลก", "ᠮᠣᠩᠭᠣᠯ", "ᏣᎳᎩ", "𐍈𐌰𐌹", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢", "🜂🜄", "👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇰🇷🇯🇵", "1️⃣2️⃣", "🙂🙂🙂 text 🙂",
    "a\u0301e\u0323\u0301", "\u00e1 vs a\u0301", "\u1100\u1161\u11a8 vs \uac01", "\u212b \u00c5 A\u030a", "\ufb01 fi",
    "q\u0307\u0323 q\u0323\u0307", "Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d", "\u200b\u200d\ufeff\u00a0\u2028\u2029\u0085",
    "\u202eright to left\u202c \u2067x\u2069", "\ufffd", "\ufdd0\uffff", "\U0010ffff", "\U00040000\U00080000", "\ud7ff\ue000",
    "def f(x):\n    return x  # comment\n", "\tif (a) {\n\t\tb++;\n\t}\r\n", '{"a": [1, 2.5, null]}', "<html><b>x</b></html>",
    "$\\frac{1}{2}$ ~`^|", "snake_case camelCase SCREAMING_CASE kebab-case", "a.b.c::d->e", "C++ C# F# .NET", "''''s 's's",
    "\u2019s don\u2019t", "'\u017f 'S 'Re 'LL 'tis", "DON'T can'T it'll'd", "ÀÉÎÕÜ ß ſ ﬁ ŉ İ ı K Å", "ⅰⅱ ① ㊗ ㏒",
    "<s></s><unk><pad>", "<|im_start|", "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n", "<|endoftext|><|endoftext|>",
    "<|im_end|>x", "a<|im_start|>1 <|im_end|> b", "<|IM_END|>", "<repo_name>x<file_sep>", "<think>\nhm\n</think>\n\n",
    "<tool_call>\n{}\n</tool_call>", "<|begin_of_text|>a<|eot_id|>", "<|start_header_id|>user<|end_header_id|>\n\n",
    "<|reserved_special_token_0|>", "<｜begin▁of▁sentence｜>a<｜end▁of▁sentence｜>", "<｜User｜> x <｜Assistant｜>", "<|EOT|>",
    "<｜tool▁sep｜>\n", "< |im_end| >", "<|im_end|", "|im_end|>", "<|im_end|><", "<<|im_end|>>", "<\u200b|im_end|>", "<0x41><0x0A>",
    "▁", "▁▁a ▁b", "Ġ Ċ Ā", "ĠHello", "[INST] x [/INST]", "<start_of_turn>user\n", "x <|im_end|> \n y", "<|im_start|> <|im_start|>",
    "a" * 1000, " " * 500, "\n" * 300, "ab" * 500, "." * 400, "9" * 50, "한" * 200, "\u0301" * 100, "\t" * 64, "\r\n" * 64, "=" * 300,
    "supercalifragilisticexpialidocious" * 10, "🙂" * 64, "👩\u200d" * 40, "中" * 256, " a" * 200, "A" * 257, "'" * 99, "\u00a0" * 40,
]

POOLS = [
    [chr(c) for c in range(32, 127)],
    [chr(c) for c in range(0, 48)],
    list("한국어日本語中文テスト々 "),
    list("👩👧\u200d\ufe0f🏽🇰🇷🙂 a"),
    list("aé\u0301\u0323\u0307ñ ßq\u00a0\u2003'"),
    list("0123456789.,-+ eE"),
    list(" \t\r\n\u00a0\u3000ab"),
    ["<|im_start|>", "<|im_end|>", "<|", "|>", "im_end", " ", "a", "\n"],
    ["'s", "'re", "'LL", "'", " ", "we", "it", "1"],
    ["<|eot_id|>", "<|begin_of_text|>", "<｜User｜>", "<｜", "｜>", "▁", "<think>", "</think>", " ", "x"],
    list("\u1100\u1161\u11a8각ㄱ가\u0308A\u030aÅ\u212b"),
    list("שלוםمرحبا \u202e\u202c()12"),
    list("{}[]()\"'\\/:;,\n\t ") + ["null", "true", "0.5", "key"],
    ["the", " The", "THE", " of", "  and", "\n\n", ", ", ". ", "ing", "tion", " 2024", "%"],
]


class Random:
    """A generator of our own (SplitMix64), since Python does not promise that of its `random` for all versions."""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        mixed = self.state
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
        return (mixed ^ mixed >> 31) % limit

    def choice(self, items):
        return items[self.below(len(items))]


def candidates():
    yield from PLAIN
    for code in [*range(32), 127, *range(128, 160)]:
        yield f"a{chr(code)}b"
    random = Random(2)
    while True:
        for pool in POOLS:
            yield "".join(random.choice(pool) for _ in range(1 + random.below(40)))
        ranges = [(0, 0x250), (0, 0xD800), (0xE000, 0x110000), (0x2000, 0x3000), (0x1F000, 0x1FB00)]
        low, high = random.choice(ranges)
        yield "".join(chr(low + random.below(high - low)) for _ in range(12))
        yield "".join(random.choice(random.choice(POOLS)) for _ in range(1 + random.below(60)))


def strings():
    """The texts, each once."""
    found = {}
    for text in candidates():
        found.setdefault(text)
        if len(found) == COUNT:
            return list(found)
