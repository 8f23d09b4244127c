"""Conversations that chat templates lay out, and templates that ask for each part of the language."""

SYSTEM = {"role": "system", "content": "You are terse.\nAnswer in Korean: 안녕. "}
USER = {"role": "user", "content": "  What's 2+2? <b>&\"quoted\"</b> 🙂\n"}
ASSISTANT = {"role": "assistant", "content": "4"}
THOUGHT = {"role": "assistant", "content": "<think>\ntwo and two\n</think>\n\n4"}
REASONED = {"role": "assistant", "content": "4", "reasoning_content": "two and two\n"}
AGAIN = {"role": "user", "content": "And 3+3?"}

CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": {"city": "서울", "days": [1, 2.5], "x": None}}}
OTHER = {"id": "c2", "type": "function", "function": {"name": "time", "arguments": {}}}
TEXT_CALL = {"id": "c3", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
RESULT = {"role": "tool", "name": "weather", "tool_call_id": "c1", "content": '{"sky": "clear"}'}
RESULT2 = {"role": "tool", "name": "time", "tool_call_id": "c2", "content": "12:00"}

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "The weather <today> in a city & 'so on'.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "A city, 도시"},
                    "days": {"type": "array", "items": {"type": "number"}, "default": [1, 1e-7, 1e22, 0.1]},
                },
                "required": ["city"],
            },
        },
    },
    {"type": "function", "function": {"name": "time", "parameters": {"type": "object", "properties": {}}}},
]


def call(*calls, content=""):
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


CONVERSATIONS = {
    "one turn": {"messages": [USER]},
    "one turn, no prompt": {"messages": [USER], "add_generation_prompt": False},
    "system": {"messages": [SYSTEM, USER]},
    "system last": {"messages": [USER, SYSTEM]},
    "two systems": {"messages": [SYSTEM, SYSTEM, USER]},
    "turns": {"messages": [SYSTEM, USER, ASSISTANT, AGAIN]},
    "turns, assistant last": {"messages": [USER, ASSISTANT], "add_generation_prompt": False},
    "two users": {"messages": [USER, AGAIN]},
    "thoughts before": {"messages": [USER, THOUGHT, AGAIN]},
    "thoughts last": {"messages": [USER, THOUGHT], "add_generation_prompt": False},
    "reasoning before": {"messages": [USER, REASONED, AGAIN]},
    "reasoning last": {"messages": [USER, REASONED], "add_generation_prompt": False},
    "older name of reasoning": {
        "messages": [USER, {"role": "assistant", "content": "4", "reasoning": "hm"}],
        "add_generation_prompt": False,
    },
    "no thinking": {"messages": [USER], "variables": {"enable_thinking": False}},
    "thinking": {"messages": [SYSTEM, USER], "variables": {"enable_thinking": True}},
    "tools": {"messages": [USER], "tools": TOOLS},
    "tools and system": {"messages": [SYSTEM, USER], "tools": TOOLS},
    "tools, no thinking": {"messages": [USER], "tools": TOOLS, "variables": {"enable_thinking": False}},
    "tool call": {"messages": [USER, call(CALL)], "tools": TOOLS, "add_generation_prompt": False},
    "tool call with text": {"messages": [USER, call(CALL, content="Let me look.")], "tools": TOOLS},
    "arguments as text": {"messages": [USER, call(TEXT_CALL), RESULT], "tools": TOOLS},
    "tool result": {"messages": [SYSTEM, USER, call(CALL), RESULT], "tools": TOOLS},
    "two tool results": {"messages": [USER, call(CALL, OTHER), RESULT, RESULT2], "tools": TOOLS},
    "after tools": {"messages": [USER, call(CALL), RESULT, ASSISTANT, AGAIN], "tools": TOOLS},
    "tool call without content": {"messages": [USER, call(TEXT_CALL, content=None), RESULT], "tools": TOOLS},
    "results without tools": {"messages": [USER, call(CALL), RESULT]},
    "empty content": {"messages": [{"role": "user", "content": ""}]},
    "unknown role": {"messages": [USER, {"role": "critic", "content": "no"}]},
    "special text": {"messages": [{"role": "user", "content": "a\r\n\tb \u00a0\u2028 'x' \\n {{ y }} {% z %}"}]},
}

# What templates in use ask of the language. `m` is the conversation "turns", as messages; the tools are TOOLS.
TEMPLATES = [
    "{{ messages[0].role }}|{{ messages[0]['role'] }}|{{ messages[0].nothing }}|{{ messages[0]['nothing'] }}",
    "{{ messages | length }} {{ messages | map(attribute='role') | join(', ') }} {{ messages[-1].role }}",
    "{% for m in messages[1:] %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ m.role }};{% endfor %}",
    "{% for m in messages[::-1] %}{{ m.role }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.length }} {% endfor %}",
    "{% for m in messages %}{% if loop.previtem is defined %}{{ loop.previtem.role }}<{% endif %}{% if not loop.last %}{{ loop.nextitem.role }}{% endif %}{% endfor %}",
    "{% for m in messages if m.role == 'user' %}{{ loop.index }}{{ m.content | trim }}{% else %}none{% endfor %}",
    "{% for m in messages | selectattr('role', 'equalto', 'user') %}{{ m.content }}{% endfor %}",
    "{% for m in messages | rejectattr('role', 'equalto', 'user') | list %}{{ m.role }}{% endfor %}",
    "{% set ns = namespace(a=0, b='x') %}{% for m in messages %}{% set ns.a = ns.a + 1 %}{% set ns.b = ns.b ~ m.role[0] %}{% endfor %}{{ ns.a }}{{ ns.b }}",
    "{{ tools | tojson }}",
    "{{ tools | tojson(indent=4) }}",
    "{{ tools | tojson(indent=2) | upper }}",
    "{{ tools[0] | tojson(separators=(',', ':')) }}",
    "{{ tools[0].function.parameters | tojson(sort_keys=true) }}",
    "{{ messages | tojson(ensure_ascii=true) }}",
    "{{ {'a': [], 'b': {}, 'c': ''} | tojson(indent=2) }}",
    "{{ [1, 1.0, 2.50, 1e30, 1e-9, 1e16, 123456789.125, true, none, -0.0] | tojson }}",
    "{{ ['\\u007f\\u0000\\x1f\\\"/<>&', \"'\"] | tojson }}",
    "{% for t in tools %}{% set f = t.function %}{{ f.name }}:{% for k, v in f.parameters.properties.items() %}{{ k }}={{ v.type }},{% endfor %}{% endfor %}",
    "{% for t in tools %}{% set f = t.function %}{% for k, v in f.parameters.properties | items %}{{ k }}{{ v.description | default('?') }}{% endfor %}{% endfor %}",
    "{% for k, v in tools[0].function.parameters.properties | dictsort %}{{ k }} {% endfor %}{% for k in tools[0] %}{{ k }}{% endfor %}",
    "{{ messages is iterable }}{{ messages[0] is mapping }}{{ messages is sequence }}{{ 'a' is string }}{{ 1 is number }}{{ none is none }}{{ x is defined }}{{ messages[0].content is string }}{{ [] is mapping }}{{ 'a' is iterable }}{{ 1.5 is integer }}{{ 2 is integer }}{{ true is boolean }}{{ 1 is boolean }}{{ 2.0 is float }}{{ 'a' is sequence }}{{ messages is not mapping }}",
    "{{ true }} {{ false }} {{ none }} {{ 1.0 }} {{ 1e20 }} {{ 7 // 2 }} {{ 7 / 2 }} {{ 7 % 3 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 6 / 2 }}",
    "{{ [1, 'a', none, true, 1.5] }} {{ {'a': 1, 'b': [none]} }} {{ (1, 2) }} {{ ['it\\'s', \"q\\\"\", 'é\\n'] }}",
    "{{ 'a' ~ 1 ~ none ~ true ~ 1.0 ~ [1] }} {{ 'ab' * 2 }} {{ [1] + [2] }} {{ 'a' + 'b' }} {{ (1, 2) + (3,) }}",
    "{{ 'x' in 'xyz' }}{{ 'role' in messages[0] }}{{ 'q' not in messages[0] }}{{ 1 in [1, 2] }}{{ 'content' in messages[0].keys() }}{{ 3 > 2 and not false or 1 }}",
    "{{ 'yes' if messages else 'no' }}{{ 'yes' if [] else 'no' }}{{ 'a' if false }}{{ '' or 'default' }}{{ 'a' and 'b' }}{{ none or 'c' }}{{ 0 or '' }}",
    "{{ ' a,b ,c '.split(',') }}{{ 'a b  c'.split() }}{{ 'a</t>b</t>c'.split('</t>')[-1] }}{{ 'a-b-c'.rsplit('-', 1)[0] }}{{ 'abc'.partition('b') }}{{ 'a.b.c'.rpartition('.') }}{{ 'a\\nb\\r\\nc'.splitlines() }}{{ 'a\\n'.splitlines(true) }}",
    "{{ '  x '.strip() }}|{{ '\\nx\\n'.lstrip('\\n') }}|{{ 'xx-'.rstrip('-') }}|{{ 'abc'[1:] }}|{{ 'abc'[-2:] }}|{{ 'abc'[::-1] }}|{{ 'abc'[0] }}|{{ 'héé'[1:2] }}",
    "{{ 'Abc'.lower() }}{{ 'abc'.upper() }}{{ 'abc'.title() }}{{ 'abc'.capitalize() }}{{ 'abc'.replace('b', 'x') }}{{ 'abc'.startswith('a') }}{{ 'abc'.endswith(('x', 'c')) }}{{ 'abc'.find('c') }}{{ 'a-b'.join(['1', '2']) }}{{ 'abcabc'.count('b') }}{{ 'abc'.index('b') }}{{ '7'.zfill(3) }}{{ 'x'.center(5) }}{{ 'x'.ljust(3) }}|{{ 'x'.rjust(3) }}{{ 'aBc'.swapcase() }}{{ 'a'.isalpha() }}{{ '1'.isdigit() }}",
    "{{ '%s is %d and %.2f, %5s|%-5s|%05d %%' | format('a', 3, 1.5, 'x', 'y', 42) }}{{ '{} {}'.format('a', 1) }}{{ '{0}{1}{0} {x} {{}}'.format('a', 'b', x=1) }}",
    "{% macro f(a, b='d', *args) %}[{{ a }}{{ b }}]{% endmacro %}{{ f(1) }}{{ f(1, 2) }}{{ f(b=3, a=4) }}",
    "{% macro outer() %}<{{ caller() }}>{% endmacro %}{% call outer() %}in{% endcall %}{% set block %}a{{ 1 }}{% endset %}{{ block | upper }}",
    "{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}{% set a, b = 1, 2 %}{{ a }}{{ b }}",
    "{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}{{ range(3) | list }}{{ range(1, 6, 2) | list }}",
    "  {%- if true -%}  a  {%- endif -%}  \n{% if true %}\n  b\n{% endif %}\n  {# comment #}\n{#- c -#}\nd\n    {% if true %}e{% endif %}\n",
    "{{- 'a' -}}   b   {{ 'c' }}\n\n{% raw %}{{ x }}{% endraw %}{{ '{{' }}\n",
    "{{ messages | first | tojson }}{{ (messages | last).role }}{{ [3, 1, 2] | sort | join }}{{ ['b', 'A'] | sort | join }}{{ [1, 2, 3] | sum }}{{ [1, 1, 2] | unique | list }}{{ [1, 5, 3] | max }}{{ [4, 2] | min }}",
    "{{ 'a b' | replace(' ', '_') }}{{ 'abc' | upper }}{{ 'x' | default('y') }}{{ nope | default('y') }}{{ '' | default('y', true) }}{{ none | default('z') }}{{ '3' | int + 1 }}{{ '1.5' | float }}{{ 3 | string + 'a' }}{{ 'abc' | length }}{{ -3 | abs }}{{ 2.567 | round(1) }}{{ 'abc' | list }}{{ 'a' | safe }}{{ 'hello world' | title }}{{ 'abc' | reverse }}{{ 'x\\ny' | indent(2) }}{{ 'x\\ny' | indent(2, true) }}{{ 'a b c' | wordcount }}",
    "{{ messages | map(attribute='content') | map('trim') | map('upper') | list }}{{ messages | groupby('role') | map('first') | list | length }}{{ [1, 2, 3, 4] | batch(2) | list }}{{ {'a': 1} | items | list }}{{ [0, 1, '', 'a'] | select | list }}{{ [1, 2] | reject('equalto', 1) | list }}",
    "{{ {'a': 1}.get('a') }}{{ {'a': 1}.get('b', 2) }}{{ {'a': 1}.get('b') }}{{ {'a': 1, 'b': 2}.keys() | list }}{{ {'a': 1}.values() | list }}{{ dict(a=1, b='c') }}{{ {'a': 1}.items() | list }}",
    "{{ bos_token }}{{ eos_token }}{{ add_generation_prompt }}{{ strftime_now('%d %b %Y') }}{{ strftime_now('%Y-%m-%d %A %B %-d') }}",
    "{% if tools is not none and tools %}{{ tools | length }}{% endif %}{% if documents %}x{% endif %}{% if tools is defined %}d{% endif %}{{ nothing }}{{ nothing is none }}{{ not nothing }}",
    "{% if messages[0]['role'] == 'system' %}{% set system = messages[0]['content'] %}{% set loop_messages = messages[1:] %}{% else %}{% set loop_messages = messages %}{% endif %}{% for m in loop_messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate') }}{% endif %}{{ m.role }}{% endfor %}{{ system }}",
    "{{ raise_exception('No ' + messages[0].role + ' please') }}",
    "{% generation %}a{{ messages[0].role }}{% endgeneration %}b",
    "{{ messages[99] }}",
    "{{ messages[0].a.b }}",
    "{{ nothing.role }}",
    "{{ nothing + 'a' }}",
    "{{ 'a' + 1 }}",
    "{{ none + 'a' }}",
    "{{ 'a' in nothing }}{% for x in nothing %}x{% endfor %}{{ nothing | length }}{{ nothing == none }}{{ nothing | tojson }}",
    "{{ messages | upside_down }}",
    "{% for m in messages recursive %}{{ m.role }}{% endfor %}{% filter upper %}a{% endfilter %}{% with a = 1 %}{{ a }}{% endwith %}",
    "{{ 1 < 2 < 3 }}{{ 'a' < 'b' }}{{ [1, 2] == [1, 2] }}{{ {'a': 1} == {'a': 1} }}{{ 1 == 1.0 }}{{ true == 1 }}{{ 'a' == none }}{{ 1 != 2 }}",
    "{% for i in [1, 1, 3] %}{{ loop.cycle('x', 'y') }}{% if loop.changed(i) %}c{% endif %}{% endfor %}",
    "{% for m in messages -%}\n  {%- generation -%}\n  a\n  {%- endgeneration %}\n{% endfor %}{% generation %}\nb{% endgeneration %}\nc",
    "{{ '-7'.zfill(4) }}{{ 'ab'.center(5, '*') }}{{ 'ab'.center(4, '*') }}{{ 'abc'.center(2) }}{{ 'abc'.partition('x') }}{{ 'abc'.rpartition('x') }}{{ 'abcb'.rindex('b') }}",
    "{{ 'abc'.index('x') }}",
]
