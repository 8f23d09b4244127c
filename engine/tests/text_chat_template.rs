//! Chat templates: right like `transformers`, and bounded whatever they do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed test panics")]

use std::time::{Duration, UNIX_EPOCH};

use halite_engine::text::{ChatInput, ChatMessage, ChatTemplate, TemplateLimits, TextError};
use serde_json::json;

fn render(template: &str) -> Result<String, TextError> {
    ChatTemplate::new(template)?.render(&conversation())
}

fn conversation() -> ChatInput {
    let mut input = ChatInput::new(vec![
        ChatMessage::new("user", "  Hello World\n"),
        ChatMessage::new("assistant", "Hi!"),
    ]);
    input.bos_token = "<s>".into();
    input.eos_token = "</s>".into();
    input
}

#[test]
fn a_template_sees_what_transformers_gives_it() {
    let template = "{{ bos_token }}{% for m in messages %}\n  {% if loop.first %}\nfirst {% endif %}\n\
                    {{ m['role'] }}:{{ m.content | trim }}{{ eos_token }}{% endfor %}\
                    {% if add_generation_prompt %}assistant:{% endif %}";
    assert_eq!(render(template).unwrap(), "<s>first user:Hello World</s>assistant:Hi!</s>assistant:");
}

#[test]
fn python_methods() {
    // Each line computed with Python 3.
    let cases = [
        ("'  a b '.strip() + '|'", "a b|"),
        ("'xxaxx'.strip('x')", "a"),
        ("'xxaxx'.lstrip('x') ~ 'xxaxx'.rstrip('x')", "axxxxa"),
        ("'\\x1f\\u00a0a'.strip()", "a"),
        ("'a,b,,c'.split(',')|join('|')", "a|b||c"),
        ("'a,b,c'.split(',', 1)|join('|')", "a|b,c"),
        ("'a,b,c'.rsplit(',', 1)|join('|')", "a,b|c"),
        ("'  a  b c '.split()|join('|')", "a|b|c"),
        ("'  a  b c '.split(none, 1)|join('|')", "a|b c "),
        ("'  a  b c '.rsplit(none, 1)|join('|')", "  a  b|c"),
        ("'a</think>b'.split('</think>')[-1]", "b"),
        ("'hello'.startswith('he') ~ 'hello'.endswith(['x', 'lo'])", "TrueTrue"),
        ("'hello'.removeprefix('he') ~ 'hello'.removesuffix('lo')", "llohel"),
        ("'aXb'.upper() ~ 'aXb'.lower() ~ 'aXb c'.capitalize() ~ 'aXb c'.title()", "AXBaxbAxb cAxb C"),
        ("'aaaa'.replace('a', 'b', 2)", "bbaa"),
        ("'é한a'.find('a') ~ ',' ~ 'aba'.rfind('a') ~ ',' ~ 'x'.find('y')", "2,2,-1"),
        ("'abab'.count('ab')", "2"),
        ("', '.join(['a', 'b'])", "a, b"),
        ("'12'.isdigit() ~ 'a1'.isalpha() ~ 'a1'.isalnum() ~ ''.isdigit()", "TrueFalseTrueFalse"),
        ("'A1'.isupper() ~ 'aB'.islower() ~ ' '.isspace()", "TrueFalseTrue"),
        ("'a\\nb'.splitlines()|length", "2"),
        ("{'b': 1, 'a': 2}.items()|list|tojson", r#"[["b", 1], ["a", 2]]"#),
        ("{'b': 1}.get('b') ~ {'b': 1}.get('c', 7) ~ {'b': 1}.get('c')", "17None"),
        ("{'b': 1}.keys()|list|tojson ~ {'b': 1}.values()|list|tojson", r#"["b"][1]"#),
        ("[1, 2, 1].count(1) ~ [1, 2].index(2)", "21"),
        ("messages[::-1][0].role", "assistant"),
    ];
    for (expression, expected) in cases {
        assert_eq!(render(&format!("{{{{ {expression} }}}}")).unwrap(), expected, "{expression}");
    }
    for wrong in
        ["'a'.nonsense()", "'a'.split('')", "', '.join([1])", "[1].index(2)", "'a'.startswith(1)", "{}.pop()"]
    {
        let error = render(&format!("{{{{ {wrong} }}}}")).unwrap_err();
        assert!(matches!(error, TextError::Template { .. }), "{wrong}: {error}");
    }
}

#[test]
fn json_is_written_as_python_writes_it() {
    let mut input = conversation();
    input.tools =
        Some(json!([{"type": "function", "function": {"name": "f", "a": [1, 2.5, null, true], "e": {}}}]));
    let template = ChatTemplate::new("{{ tools | tojson }}").unwrap();
    // json.dumps(tools, ensure_ascii=False): keys keep their order, a space follows commas and colons.
    let expected = r#"[{"type": "function", "function": {"name": "f", "a": [1, 2.5, null, true], "e": {}}}]"#;
    assert_eq!(template.render(&input).unwrap(), expected);
    assert_eq!(render("{{ {'k': ['<한>\\n']} | tojson }}").unwrap(), r#"{"k": ["<한>\n"]}"#);
    assert_eq!(render("{{ {'k': [1]} | tojson(indent=2) }}").unwrap(), "{\n  \"k\": [\n    1\n  ]\n}");
    assert!(render("{{ 1 | tojson(indent=1000000000) }}").is_err());
}

#[test]
fn loop_controls_and_the_date() {
    assert_eq!(render("{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i > 3 %}{% break %}{% endif %}{{ i }}{% endfor %}").unwrap(), "013");
    let template = ChatTemplate::new(
        "{% if strftime_now is defined %}{{ strftime_now('%d %b %Y') }}{% else %}none{% endif %}",
    )
    .unwrap();
    let mut input = conversation();
    assert_eq!(template.render(&input).unwrap(), "none");
    input.now = Some(UNIX_EPOCH + Duration::from_secs(951_782_400));
    assert_eq!(template.render(&input).unwrap(), "29 Feb 2000");
    input.variables.insert("enable_thinking".into(), json!(false));
    let template = ChatTemplate::new("{{ enable_thinking is false }}").unwrap();
    assert_eq!(template.render(&input).unwrap(), "True");
}

#[test]
fn a_refusal_carries_the_templates_message() {
    let nested = "{% macro f() %}{{ raise_exception('roles must alternate') }}{% endmacro %}{% set x %}{{ f() }}{% endset %}";
    for template in ["{{ raise_exception('roles must alternate') }}", nested] {
        match render(template) {
            Err(TextError::TemplateRefused { message }) => assert_eq!(message, "roles must alternate"),
            other => panic!("expected a refusal, got {other:?}"),
        }
    }
}

#[test]
fn a_refusal_is_not_as_long_as_the_template_likes() {
    let error = render("{{ raise_exception('roles ' + 'e' * 100000) }}").unwrap_err();
    assert!(matches!(error, TextError::TemplateRefused { .. }), "{error:?}");
    let message = error.to_string();
    assert!(message.contains("roles e") && message.len() < 500, "{message}");
}

#[test]
fn broken_templates_say_where() {
    for (template, part) in [
        ("\n{% if %}", "2"),
        ("{{ nothing.at.all }}", "undefined"),
        ("{% include 'x' %}", "include"),
        ("{{ 1 // 0 }}", ""),
    ] {
        let message = render(template).unwrap_err().to_string();
        assert!(message.contains(part), "{template}: {message}");
    }
}

#[test]
fn endless_work_runs_out_of_fuel() {
    let loops = "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}";
    let doubling =
        "{% set n = namespace(s='aaaa') %}{% for i in range(64) %}{% set n.s = n.s ~ n.s %}{% endfor %}";
    for template in [
        loops,
        doubling,
        "{{ 'a' * 100000000000 }}",
        "{{ 'a' | indent(10000000000) }}",
        "{{ '%10000000000s' | format('a') }}",
        "{% set s = 'a' * 1000000 %}{% for i in range(100000) %}{{ s.find('b') }}{% endfor %}",
        "{{ ('a' * 1000000).replace('a', 'b' * 1000000) | length }}",
        "{{ ('x' * 1000000).join(['a'] * 100000) | length }}",
    ] {
        let error = render(template).unwrap_err();
        assert!(matches!(error, TextError::TemplateOutOfFuel { .. }), "{template}: {error}");
    }
    let error = render("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}").unwrap_err();
    assert!(error.to_string().contains("recursion"), "{error}");
    assert!(render(&"{{ (".repeat(10_000)).is_err());
    // Valid, and deep: an answer or an error, but no overflow.
    let _ = render(&format!("{{{{ {}1 }}}}", "-".repeat(100_000)));
    assert!(render(&format!("{{{{ {}1{} }}}}", "[".repeat(50_000), "]".repeat(50_000))).is_err());
}

#[test]
fn lists_that_share_their_parts_are_not_printed() {
    let bomb = "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}";
    let mut uses: Vec<String> = [
        "{{ n.x }}",
        "{{ {'k': n.x} }}",
        "{{ {'k': n.x} | string }}",
        "{{ (n.x,) | string }}",
        "{{ n.x | tojson }}",
        "{{ n.x | tojson(sort_keys=true) }}",
        "{{ n | string }}",
        "{{ '{}'.format(n.x) }}",
        "{{ '{a}'.format(a=n.x) }}",
        "{{ raise_exception(n.x) }}",
        "{{ n.x | join }}",
        "{{ [n.x, 1] | join(', ') }}",
        "{{ [1, 2] | join(n.x) }}",
        "{{ ['a'] | join(d=n.x) }}",
        "{{ '%s' | format(n.x) }}",
        "{{ '%(a)s' | format(a=n.x) }}",
        "{{ 'a' | replace(n.x, 'b') }}",
        "{{ 'a' | replace('a', n.x) }}",
        "{{ 'a' | trim(n.x) }}",
        "{{ 'a' is startingwith(n.x) }}",
        "{{ n.x is startingwith('a') }}",
        "{{ 'a' is endingwith(n.x) }}",
        "{{ [n.x] | select('startingwith', 'a') | list }}",
        "{{ debug(n.x) }}",
        "{{ debug() }}",
    ]
    .map(String::from)
    .to_vec();
    let filters = [
        "capitalize",
        "e",
        "escape",
        "format",
        "indent",
        "lower",
        "pprint",
        "replace('a', 'b')",
        "safe",
        "string",
        "title",
        "trim",
        "upper",
    ];
    for filter in filters {
        uses.push(format!("{{{{ n.x | {filter} }}}}"));
        let (name, args) = filter.split_once('(').unwrap_or((filter, ")"));
        let comma = if args == ")" { "" } else { ", " };
        uses.push(format!("{{{{ [n.x] | map('{name}'{comma}{args} | list }}}}"));
    }
    for use_it in uses {
        let error = render(&format!("{bomb}{use_it}")).unwrap_err();
        assert!(
            matches!(error, TextError::Template { .. } | TextError::TemplateOutOfFuel { .. }),
            "{use_it}: {error}"
        );
    }
    assert_eq!(render("{{ [1, {'a': ['b']}] }}").unwrap(), "[1, {'a': ['b']}]");
    assert_eq!(render("{{ '{}'.format([1, 'a']) }}{{ [[1], 'a'] | join(';') }}").unwrap(), "[1, 'a'][1];a");
    assert!(matches!(
        render("{{ raise_exception(['a']) }}"),
        Err(TextError::TemplateRefused { message }) if message == "['a']"
    ));
}

#[test]
fn lists_are_not_printed_where_their_texts_or_their_length_are_too_much() {
    let long_texts = "{% set s = 'a' * 1000000 %}{% set n = namespace(x=[s] * 500000) %}";
    let long = "{% set n = namespace(x=[1] * 100000000000) %}";
    for bomb in [long_texts, long] {
        for use_it in
            ["{{ n.x | string }}", "{{ n.x | pprint }}", "{{ '{}'.format(n.x) }}", "{{ n.x | tojson }}"]
        {
            let error = render(&format!("{bomb}{use_it}")).unwrap_err();
            assert!(
                matches!(error, TextError::Template { .. } | TextError::TemplateOutOfFuel { .. }),
                "{use_it}: {error}"
            );
        }
    }
}

/// What stands before a check must not change what a filter or a test does.
#[test]
fn checked_filters_and_tests_do_what_they_did() {
    // Each line computed with Jinja2.
    let cases = [
        ("'a b' | capitalize ~ 'a b' | title ~ 'A' | lower ~ 'a' | upper", "A bA BaA"),
        ("'<a>' | e ~ ' a ' | trim ~ '(a)' | trim('()')", "&lt;a&gt;aa"),
        ("'%s-%d' | format('a', 2)", "a-2"),
        ("'%(a)s' | format(a=1)", "1"),
        ("[1, 2] | join(', ') ~ [{'a': 3}] | join(attribute='a') ~ [4, 5] | join(d='-')", "1, 234-5"),
        (
            "'aaa' | replace('a', 'b') ~ 'aaa' | replace('a', 'b', 2) ~ 'aaa' | replace('a', 'b', count=1)",
            "bbbbbabaa",
        ),
        (
            "'a\nb' | indent ~ ',' ~ 'a\nb' | indent(2, true) ~ ',' ~ 'a\nb' | indent(width=1)",
            "a\n    b,  a\n  b,a\n b",
        ),
        ("[1, 2] | upper ~ 12 | replace(1, 3)", "[1, 2]32"),
        ("['a', 'b'] | map('upper') | join", "AB"),
    ];
    for (expression, expected) in cases {
        assert_eq!(render(&format!("{{{{ {expression} }}}}")).unwrap(), expected, "{expression}");
    }
    assert_eq!(render("{{ 'ab' is startingwith('a') }}{{ 'ab' is endingwith('a') }}").unwrap(), "TrueFalse");
}

#[test]
fn names_are_looked_for_in_the_template_that_will_run() {
    let default = || ChatTemplate::new("{{ messages }}{# developer #}").unwrap();
    let one = default();
    for with_tools in [false, true] {
        assert!(one.mentions("developer", with_tools) && !one.mentions("tools", with_tools));
    }
    let two = default().with_tool_use(ChatTemplate::new("{{ tools }}").unwrap());
    assert!(two.mentions("tools", true) && !two.mentions("tools", false));
    assert!(two.mentions("developer", false) && !two.mentions("developer", true));
}

#[test]
fn the_deepest_list_that_fuel_can_build_does_not_overflow_the_stack() {
    let deep = |levels: usize, use_it: &str| {
        let build = "{% set n.x = [n.x] %}".repeat(10);
        format!(
            "{{% set n = namespace(x=[]) %}}{{% for i in range({levels}) %}}{build}{{% endfor %}}{use_it}"
        )
    };
    for levels in [1000, 10_000, 15_000, 17_500, 99_999] {
        for use_it in
            ["{{ n.x }}", "{{ n.x == [n.x] }}", "{{ (n.x ~ '') | length }}", "{{ n.x | tojson }}", "ok"]
        {
            // An answer or an error: what counts is that the process goes on.
            let _ = render(&deep(levels, use_it));
        }
    }
}

#[test]
fn output_source_and_time_have_limits() {
    let mut limits = TemplateLimits::default();
    limits.output_bytes = 10;
    let template =
        ChatTemplate::with_limits("{{ 'a' * 10 }}{% if add_generation_prompt %}a{% endif %}", limits)
            .unwrap();
    let mut input = conversation();
    let error = template.render(&input).unwrap_err();
    assert!(matches!(error, TextError::TemplateOutputTooLong { limit: 10 }), "{error}");
    input.add_generation_prompt = false;
    assert_eq!(template.render(&input).unwrap(), "a".repeat(10));

    let error = ChatTemplate::new(&"x".repeat((256 << 10) + 1)).unwrap_err();
    assert!(matches!(error, TextError::TemplateTooLong { .. }), "{error}");

    // Comparing two lists of 2^24 parts made of 24: cheap in fuel.
    let mut limits = TemplateLimits::default();
    limits.time = Duration::from_millis(1);
    let slow = "{% set n = namespace(x=[1], y=[1]) %}{% for i in range(24) %}{% set n.x = [n.x, n.x] %}\
                {% set n.y = [n.y, n.y] %}{% endfor %}{{ n.x == n.y }}";
    let error = ChatTemplate::with_limits(slow, limits).unwrap().render(&input).unwrap_err();
    assert!(matches!(error, TextError::TemplateTooSlow { .. }), "{error}");
}
