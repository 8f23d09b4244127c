"""OpenAI's own Python client against a running `halite serve`.

Usage: openai_client.py BASE_URL API_KEY MODEL [CHECK...]

Every function called check_* is one check; without names all of them run. The exit status is 0 if all hold.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

import openai

URL, KEY, MODEL = sys.argv[1:4]
CLIENT = openai.OpenAI(base_url=URL, api_key=KEY, max_retries=0, timeout=600)
FRANCE = [{"role": "user", "content": "What is the capital of France?"}]

# Greedy continuations of these stay in their scripts; a character is up to four tokens.
WIDE = [
    "안녕하세요 세계 안녕하세요 세계 안녕하세요",
    "こんにちは世界、こんにちは世界、こんにちは",
    "🙂🚀🎉🙂🚀🎉🙂🚀🎉🙂",
]


def chat(messages=None, **parameters):
    parameters.setdefault("temperature", 0)
    parameters.setdefault("max_tokens", 24)
    return CLIENT.chat.completions.create(model=MODEL, messages=messages or FRANCE, **parameters)


def complete(prompt, **parameters):
    parameters.setdefault("temperature", 0)
    return CLIENT.completions.create(model=MODEL, prompt=prompt, **parameters)


def chat_pieces(messages=None, **parameters):
    """The pieces of a streamed chat answer, and why it ended."""
    pieces, reason = [], None
    for chunk in chat(messages, stream=True, **parameters):
        for choice in chunk.choices:
            assert reason is None, "nothing follows the end"
            pieces.append(choice.delta.content or "")
            reason = choice.finish_reason
    return pieces, reason


def completion_pieces(prompt, **parameters):
    pieces, reason = [], None
    for chunk in complete(prompt, stream=True, **parameters):
        for choice in chunk.choices:
            pieces.append(choice.text)
            reason = choice.finish_reason or reason
    return pieces, reason


def equal(found, expected, what=""):
    assert found == expected, f"{what}\n   found {found!r}\nexpected {expected!r}"


def check_models():
    equal([model.id for model in CLIENT.models.list()], [MODEL])
    equal(CLIENT.models.retrieve(MODEL).id, MODEL)


def check_chat():
    answer = chat()
    assert "Paris" in answer.choices[0].message.content, answer
    equal(answer.choices[0].finish_reason, "stop")
    equal(answer.choices[0].message.role, "assistant")
    usage = answer.usage
    equal(usage.prompt_tokens, 37)
    equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)
    # The first check may have been the one that filled the cache, this one cannot be.
    assert chat().usage.prompt_tokens_details.cached_tokens >= 32


def check_completion():
    answer = complete("The capital of France is", max_tokens=8)
    assert "Paris" in answer.choices[0].text, answer
    equal(answer.choices[0].finish_reason, "length")
    equal(answer.usage.completion_tokens, 8)
    both = complete(["The capital of France is", "The capital of Japan is"], max_tokens=8, echo=True)
    equal(both.choices[0].text, "The capital of France is" + answer.choices[0].text)
    assert "Tokyo" in both.choices[1].text, both


def check_stream_with_usage():
    expected = chat()
    chunks = list(chat(stream=True, stream_options={"include_usage": True}))
    equal(chunks[-1].choices, [])
    for name in ["prompt_tokens", "completion_tokens", "total_tokens"]:
        equal(getattr(chunks[-1].usage, name), getattr(expected.usage, name), name)
    assert all(chunk.usage is None for chunk in chunks[:-1])
    equal(len({chunk.id for chunk in chunks}), 1)
    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    equal(text, expected.choices[0].message.content)
    # The answer comes in pieces, not at its end.
    assert len(chunks) > 5, chunks
    pieces, _ = completion_pieces("The capital of France is", max_tokens=8)
    equal("".join(pieces), complete("The capital of France is", max_tokens=8).choices[0].text)


def check_stop_strings_over_token_borders():
    pieces, _ = chat_pieces()
    pieces = [piece for piece in pieces if piece]
    whole = "".join(pieces)
    over = [one[-2:] + other[:2] for one, other in zip(pieces, pieces[1:])]
    assert len(over) > 3 and any(stop not in pieces for stop in over), pieces
    for stop in over + [whole[3:20], whole[-1]]:
        expected = whole[: whole.find(stop)]
        answer = chat(stop=[stop, "never said"]).choices[0]
        equal((answer.message.content, answer.finish_reason), (expected, "stop"), repr(stop))
        streamed, reason = chat_pieces(stop=stop)
        equal(("".join(streamed), reason), (expected, "stop"), repr(stop))
    # The beginning of a stop string, held back and never completed.
    equal("".join(chat_pieces(stop=whole[-3:] + "~")[0]), whole)


def check_seeds():
    def draw(**parameters):
        return chat(temperature=1.3, **parameters).choices[0].message.content

    equal(draw(seed=7), draw(seed=7))
    assert len({draw(seed=seed) for seed in range(4)}) > 1
    assert len({draw() for _ in range(4)}) > 1, "without a seed each answer is another draw"
    several = chat(temperature=1.3, seed=7, n=3).choices
    equal([choice.index for choice in several], [0, 1, 2])
    equal(several[0].message.content, draw(seed=7))
    assert len({choice.message.content for choice in several}) > 1


def refused(kind, status, call, param=None, code=None):
    try:
        call()
    except openai.APIStatusError as error:
        assert type(error) is kind, f"{error!r} is no {kind}"
        equal(error.status_code, status)
        equal(sorted(error.body), ["code", "message", "param", "type"])
        if param:
            equal(error.param, param)
        if code:
            equal(error.code, code)
        equal(error.type, "invalid_request_error")
    else:
        raise AssertionError("nothing was refused")


def check_errors():
    bad = openai.BadRequestError
    for stream in [False, True]:
        refused(bad, 400, lambda: chat(max_tokens=0, stream=stream), "max_tokens")
        refused(bad, 400, lambda: chat(max_tokens=-186, stream=stream), "max_tokens")
        refused(bad, 400, lambda: chat(temperature=9, stream=stream), "temperature")
        refused(bad, 400, lambda: chat(logprobs=True, stream=stream), "logprobs")
        refused(bad, 400, lambda: chat(extra_body={"best_off": 2}, stream=stream), "best_off", "unknown_parameter")
        refused(bad, 400, lambda: complete("", stream=stream), "prompt")
        long = [{"role": "user", "content": "word " * 9000}]
        refused(bad, 400, lambda: chat(long, stream=stream), "messages", "context_length_exceeded")
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        refused(bad, 400, lambda: chat([{"role": "user", "content": [picture]}], stream=stream), "messages[0].content[0]")
    refused(bad, 400, lambda: chat(response_format={"type": "json_object"}), "response_format")
    refused(bad, 400, lambda: CLIENT.chat.completions.create(model=MODEL, messages=[]), "messages")
    nobody = {"model": "nobody", "messages": FRANCE}
    refused(openai.NotFoundError, 404, lambda: CLIENT.chat.completions.create(**nobody), "model", "model_not_found")
    refused(openai.NotFoundError, 404, lambda: CLIENT.models.retrieve("nobody"), code="model_not_found")
    refused(openai.NotFoundError, 404, lambda: CLIENT.embeddings.create(model=MODEL, input="x"))
    stranger = CLIENT.with_options(api_key="wrong")
    refused(openai.AuthenticationError, 401, stranger.models.list, code="invalid_api_key")
    large = [{"role": "user", "content": "x" * (5 << 20)}]
    refused(openai.APIStatusError, 413, lambda: chat(large), code="request_too_large")
    check_models()


def check_eight_clients_at_once():
    countries = ["France", "Japan", "Italy", "Kenya", "Peru", "India", "Norway", "Chile"]

    def ask(number):
        messages = [{"role": "user", "content": f"Tell me about {countries[number]}."}]
        parameters = {"max_tokens": 12 + 3 * number, "seed": number, "temperature": number % 2 * 0.9}
        if number % 3:
            return "".join(chat_pieces(messages, **parameters)[0])
        return chat(messages, **parameters).choices[0].message.content

    alone = [ask(number) for number in range(8)]
    assert len(set(alone)) == 8
    with ThreadPoolExecutor(8) as pool:
        for turn in range(2):
            equal(list(pool.map(ask, range(8))), alone, f"turn {turn}")


def check_deltas_of_wide_characters():
    def compare(prompt, max_tokens):
        whole = complete(prompt, max_tokens=max_tokens).choices[0]
        pieces, reason = completion_pieces(prompt, max_tokens=max_tokens)
        equal(("".join(pieces), reason), (whole.text, whole.finish_reason), f"{prompt} {max_tokens}")
        spoken = chat([{"role": "user", "content": prompt}], max_tokens=max_tokens).choices[0].message.content
        equal("".join(chat_pieces([{"role": "user", "content": prompt}], max_tokens=max_tokens)[0]), spoken)
        return whole.text

    cases = [(prompt, max_tokens) for prompt in WIDE for max_tokens in range(1, 25)]
    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(lambda case: compare(*case), cases))
    for prompt in WIDE:
        of_prompt = [text for (of, _), text in zip(cases, texts) if of == prompt]
        # What the test is about: characters of several bytes, and cuts through the middle of one.
        assert any(ord(c) > 0x2FFF and c != "\ufffd" for c in of_prompt[-1]), of_prompt[-1]
        assert any(text.endswith("\ufffd") for text in of_prompt), of_prompt
        # Up to the cut, a shorter answer is the beginning of the longest.
        for text in of_prompt:
            assert of_prompt[-1].startswith(text.rstrip("\ufffd")), (text, of_prompt[-1])


def check_a_client_that_leaves():
    stream = chat(messages=[{"role": "user", "content": "Write a very long story."}], max_tokens=4000, stream=True)
    for _, _chunk in zip(range(4), stream):
        pass
    stream.close()
    # The next one is served as if nothing had been.
    assert "Paris" in chat().choices[0].message.content


def main():
    checks = {name.removeprefix("check_"): check for name, check in globals().items() if name.startswith("check_")}
    chosen = sys.argv[4:] or list(checks)
    for name in chosen:
        checks[name]()
        print(f"{name}: holds", flush=True)


if __name__ == "__main__":
    main()
