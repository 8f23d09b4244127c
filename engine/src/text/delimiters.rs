//! What becomes of the delimiters at which a text is cut.

use tokenizers::SplitDelimiterBehavior as Behavior;

use super::pattern::Cuts;

/// Delimiters and what lies between them, with their parts exchanged.
pub(crate) fn flip(cuts: Cuts) -> Cuts {
    cuts.into_iter().map(|(range, is_delimiter)| (range, !is_delimiter)).collect()
}

/// The ranges that a text is cut into.
pub(crate) fn delimited(cuts: Cuts, behavior: Behavior) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> = Vec::with_capacity(cuts.len());
    let mut before = false;
    match behavior {
        Behavior::Isolated => ranges.extend(cuts.into_iter().map(|(range, _)| range)),
        Behavior::Removed => {
            ranges.extend(cuts.into_iter().filter(|(_, is_delimiter)| !is_delimiter).map(|(range, _)| range));
        }
        Behavior::Contiguous => {
            for ((start, end), is_delimiter) in cuts {
                match ranges.last_mut().filter(|_| is_delimiter == before) {
                    Some(last) => last.1 = end,
                    None => ranges.push((start, end)),
                }
                before = is_delimiter;
            }
        }
        // Of several delimiters in a row, one joins its neighbour.
        Behavior::MergedWithPrevious => {
            for ((start, end), is_delimiter) in cuts {
                match ranges.last_mut().filter(|_| is_delimiter && !before) {
                    Some(last) => last.1 = end,
                    None => ranges.push((start, end)),
                }
                before = is_delimiter;
            }
        }
        Behavior::MergedWithNext => {
            for ((start, end), is_delimiter) in cuts.into_iter().rev() {
                match ranges.last_mut().filter(|_| is_delimiter && !before) {
                    Some(next) => next.0 = start,
                    None => ranges.push((start, end)),
                }
                before = is_delimiter;
            }
            ranges.reverse();
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::super::pattern::{Clock, Pattern};
    use super::*;

    fn cut(text: &str, behavior: Behavior) -> Vec<&str> {
        let cuts = Pattern::regex("-").unwrap().find(text, Clock::start()).unwrap();
        delimited(cuts, behavior).into_iter().map(|(start, end)| &text[start..end]).collect()
    }

    #[test]
    fn as_the_tokenizers_package_documents_it() {
        let text = "the-final--countdown";
        assert_eq!(cut(text, Behavior::Removed), ["the", "final", "countdown"]);
        assert_eq!(cut(text, Behavior::Isolated), ["the", "-", "final", "-", "-", "countdown"]);
        assert_eq!(cut(text, Behavior::MergedWithPrevious), ["the-", "final-", "-", "countdown"]);
        assert_eq!(cut(text, Behavior::MergedWithNext), ["the", "-final", "-", "-countdown"]);
        assert_eq!(cut(text, Behavior::Contiguous), ["the", "-", "final", "--", "countdown"]);
        for behavior in [Behavior::MergedWithPrevious, Behavior::MergedWithNext, Behavior::Contiguous] {
            assert_eq!(cut("-a", behavior).concat() + &cut("a-", behavior).concat(), "-aa-");
        }
    }
}
