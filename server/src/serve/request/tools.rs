//! Tools: definitions for the template, and calls in the conversation.

use crate::serve::error::{ApiError, echo};
use crate::serve::fields::{Fields, string, wrong};
use crate::serve::limits::MAX_TOOLS;
use serde_json::{Value, json};

/// The tools that the template is to show.
pub(super) fn tools(fields: &mut Fields) -> Result<Option<Value>, ApiError> {
    let tools = match fields.take("tools") {
        None => None,
        Some(Value::Array(tools)) if tools.is_empty() => None,
        Some(Value::Array(tools)) if tools.len() > MAX_TOOLS => {
            let message = format!("`tools` has {} tools, at most {MAX_TOOLS}", tools.len());
            return Err(ApiError::parameter("tools", message));
        }
        Some(Value::Array(tools)) => {
            for (index, tool) in tools.iter().enumerate() {
                definition(tool.clone(), &format!("tools[{index}]"))?;
            }
            Some(Value::Array(tools))
        }
        Some(other) => return Err(wrong("tools", "an array of tools", &other)),
    };
    if tools.is_some() {
        fields.off("parallel_tool_calls", &[json!(true)])?;
    } else {
        fields.ignore(&["parallel_tool_calls"]);
    }
    match fields.take("tool_choice") {
        None => Ok(tools),
        Some(Value::String(choice)) if choice == "auto" => Ok(tools),
        Some(Value::String(choice)) if choice == "none" => Ok(None),
        Some(_) => {
            let message = "`tool_choice` may be \"auto\" or \"none\"; calls cannot be forced";
            Err(ApiError::unsupported("tool_choice", message))
        }
    }
}

fn definition(value: Value, path: &str) -> Result<(), ApiError> {
    let mut tool = Fields::of(value, path)?;
    is_function(&mut tool)?;
    let mut function = Fields::of(tool.required("function")?, &tool.path("function"))?;
    function.required_string("name")?;
    function.string("description")?;
    function.boolean("strict")?;
    if let Some(parameters) = function.take("parameters").filter(|parameters| !parameters.is_object()) {
        return Err(wrong(&function.path("parameters"), "an object: a JSON schema", &parameters));
    }
    function.done()?;
    tool.done()
}

/// What the assistant called, in the form that templates take.
pub(super) fn tool_calls(value: Value, path: &str) -> Result<Value, ApiError> {
    let calls = match value {
        Value::Array(calls) if (1..=MAX_TOOLS).contains(&calls.len()) => calls,
        other => return Err(wrong(path, &format!("an array of 1 to {MAX_TOOLS} calls"), &other)),
    };
    let calls = calls.into_iter().enumerate().map(|(index, value)| {
        let mut call = Fields::of(value, &format!("{path}[{index}]"))?;
        let id = call.required_string("id")?;
        is_function(&mut call)?;
        let mut function = Fields::of(call.required("function")?, &call.path("function"))?;
        let name = function.required_string("name")?;
        let arguments = arguments(function.required("arguments")?, &function.path("arguments"))?;
        function.done()?;
        call.ignore(&["index"]);
        call.done()?;
        Ok(json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } }))
    });
    Ok(Value::Array(calls.collect::<Result<_, ApiError>>()?))
}

/// The arguments of a call: templates want the object, clients send its text.
fn arguments(value: Value, path: &str) -> Result<Value, ApiError> {
    let text = string(value, path)?;
    Ok(match serde_json::from_str::<Value>(&text) {
        Ok(object @ Value::Object(_)) => object,
        // What a model wrote badly stays as it is: it is a part of the conversation.
        _ => Value::String(text),
    })
}

fn is_function(fields: &mut Fields) -> Result<(), ApiError> {
    let kind = fields.required_string("type")?;
    if kind == "function" {
        return Ok(());
    }
    let path = fields.path("type");
    let message = format!("`{path}` is {}; only \"function\" is supported", echo(&kind));
    Err(ApiError::unsupported(path, message))
}
