//! Sources of kernels: part of this crate, with the headers that they include.

/// A file of CUDA C++, as it lies in this crate.
#[derive(Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Source {
    /// Its path below `src`, which compilers' messages name.
    pub file: &'static str,
    /// Its text.
    pub text: &'static str,
}

impl Source {
    /// A file of CUDA C++ that is not of this crate; it may include the crate's headers.
    pub const fn new(file: &'static str, text: &'static str) -> Self {
        Source { file, text }
    }
}

/// What sources may include, by the name that stands in the quotes.
const HEADERS: &[Source] = &[
    Source::new("activation_row.cuh", include_str!("../activation_row.cuh")),
    Source::new("attention/call.cuh", include_str!("../attention/call.cuh")),
    Source::new("attention/element.cuh", include_str!("../attention/element.cuh")),
    Source::new("attention/products.cuh", include_str!("../attention/products.cuh")),
    Source::new("attention/stage.cuh", include_str!("../attention/stage.cuh")),
    Source::new("attention/state.cuh", include_str!("../attention/state.cuh")),
    Source::new("attention/step.cuh", include_str!("../attention/step.cuh")),
    Source::new("attention/visible.cuh", include_str!("../attention/visible.cuh")),
    Source::new("attention/weigh.cuh", include_str!("../attention/weigh.cuh")),
    Source::new("cache/row.cuh", include_str!("../cache/row.cuh")),
    Source::new("element.cuh", include_str!("../element.cuh")),
    Source::new("floats.cuh", include_str!("../floats.cuh")),
    Source::new("functions.cuh", include_str!("../functions.cuh")),
    Source::new("groups.cuh", include_str!("../groups.cuh")),
    Source::new("linear/dot.cuh", include_str!("../linear/dot.cuh")),
    Source::new("linear/elements.cuh", include_str!("../linear/elements.cuh")),
    Source::new("linear/epilogue.cuh", include_str!("../linear/epilogue.cuh")),
    Source::new("linear/float.cuh", include_str!("../linear/float.cuh")),
    Source::new("linear/float_sums.cuh", include_str!("../linear/float_sums.cuh")),
    Source::new("linear/group_rows.cuh", include_str!("../linear/group_rows.cuh")),
    Source::new("linear/group_weights.cuh", include_str!("../linear/group_weights.cuh")),
    Source::new("linear/group_wise.cuh", include_str!("../linear/group_wise.cuh")),
    Source::new("linear/int8.cuh", include_str!("../linear/int8.cuh")),
    Source::new("linear/tile.cuh", include_str!("../linear/tile.cuh")),
    Source::new("norm/row.cuh", include_str!("../norm/row.cuh")),
    Source::new("prelude.cuh", include_str!("../prelude.cuh")),
    Source::new("quantize/rows.cuh", include_str!("../quantize/rows.cuh")),
    Source::new("quantize/steps.cuh", include_str!("../quantize/steps.cuh")),
    Source::new("rope/turn.cuh", include_str!("../rope/turn.cuh")),
    Source::new("sampling/kept.cuh", include_str!("../sampling/kept.cuh")),
    Source::new("sampling/row.cuh", include_str!("../sampling/row.cuh")),
    Source::new("sampling/select.cuh", include_str!("../sampling/select.cuh")),
    Source::new("team.cuh", include_str!("../team.cuh")),
    Source::new("vector.cuh", include_str!("../vector.cuh")),
];

/// The headers that a text includes, theirs too, each once; `Err` names one that does not exist.
pub(super) fn headers(text: &str) -> Result<Vec<&'static Source>, String> {
    let mut found: Vec<&'static Source> = Vec::new();
    let mut open = included(text);
    while let Some(name) = open.pop() {
        if found.iter().any(|header| header.file == name) {
            continue;
        }
        let header = HEADERS.iter().find(|header| header.file == name).ok_or(name)?;
        found.push(header);
        open.extend(included(header.text));
    }
    found.sort_by_key(|header| header.file);
    Ok(found)
}

fn included(text: &str) -> Vec<String> {
    let name = |line: &str| Some(line.trim().strip_prefix("#include \"")?.strip_suffix('"')?.to_owned());
    text.lines().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_found_by_what_includes_them() {
        assert!(headers("int x;").unwrap().is_empty());
        let twice = headers("#include \"prelude.cuh\"\n  #include \"prelude.cuh\"\n").unwrap();
        assert_eq!(twice.iter().map(|header| header.file).collect::<Vec<_>>(), ["prelude.cuh"]);
        assert_eq!(headers("#include \"gone.cuh\"").unwrap_err(), "gone.cuh");
    }

    #[test]
    fn every_header_finds_its_own() {
        for header in HEADERS {
            headers(header.text).unwrap();
        }
    }
}
