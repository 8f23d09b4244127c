//! Stop strings in text that arrives in pieces.

use super::error::TextError;

/// Most stop strings in one request.
const MAX_STOPS: usize = 64;
/// Longest stop string, in bytes.
const MAX_STOP_BYTES: usize = 4096;

/// What a [`StopMatcher`] made of a piece of text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StopProgress {
    /// Text that may be shown now.
    pub text: String,
    /// The stop string that ended the answer, by its position in the list. The rest of the piece is dropped.
    pub stopped: Option<usize>,
}

/// Ends an answer at the first stop string, however its text is cut into pieces.
///
/// The answer ends where a stop string is first complete; if several are complete with the same character, the
/// longest counts. Everything before it is shown, nothing of it. As long as the end of the text could be the
/// beginning of a stop string it is held back, and released when it turns out not to be.
///
/// ```
/// use halite_engine::text::StopMatcher;
///
/// let mut matcher = StopMatcher::new(&["</end>"])?;
/// assert_eq!(matcher.push("1 < 2 </").text, "1 < 2 ");
/// assert_eq!(matcher.push("e").text, "");
/// assert_eq!(matcher.push("m>").text, "</em>");
/// let last = matcher.push("!</end>?");
/// assert_eq!((last.text.as_str(), last.stopped), ("!", Some(0)));
/// # Ok::<(), halite_engine::text::TextError>(())
/// ```
#[derive(Clone, Debug)]
pub struct StopMatcher {
    patterns: Vec<Pattern>,
    held: String,
    stopped: Option<usize>,
}

/// One stop string and how much of it the text ends with (Knuth, Morris and Pratt, 1977).
#[derive(Clone, Debug)]
struct Pattern {
    bytes: Vec<u8>,
    /// For each length matched, the next shorter length that still matches.
    shorter: Vec<usize>,
    matched: usize,
}

impl Pattern {
    fn new(text: &str) -> Self {
        let bytes = text.as_bytes().to_vec();
        let mut shorter = vec![0; bytes.len()];
        let mut length = 0;
        for at in 1..bytes.len() {
            while length > 0 && bytes[at] != bytes[length] {
                length = shorter[length - 1];
            }
            length += usize::from(bytes[at] == bytes[length]);
            shorter[at] = length;
        }
        Self { bytes, shorter, matched: 0 }
    }

    /// Takes one byte; true if the pattern is complete with it.
    fn step(&mut self, byte: u8) -> bool {
        while self.matched > 0 && self.bytes[self.matched] != byte {
            self.matched = self.shorter[self.matched - 1];
        }
        self.matched += usize::from(self.bytes[self.matched] == byte);
        self.matched == self.bytes.len()
    }
}

impl StopMatcher {
    /// A matcher for these strings; none at all is fine.
    ///
    /// # Errors
    /// [`TextError::StopStrings`] for an empty string, one longer than 4096 bytes, or more than 64 of them.
    pub fn new(stops: &[impl AsRef<str>]) -> Result<Self, TextError> {
        if stops.len() > MAX_STOPS {
            return Err(TextError::StopStrings(format!(
                "{} given, at most {MAX_STOPS} allowed",
                stops.len()
            )));
        }
        for (at, stop) in stops.iter().enumerate() {
            let found = stop.as_ref().len();
            if found == 0 || found > MAX_STOP_BYTES {
                let message = format!("string {at} has {found} bytes; 1 to {MAX_STOP_BYTES} are allowed");
                return Err(TextError::StopStrings(message));
            }
        }
        let patterns = stops.iter().map(|stop| Pattern::new(stop.as_ref())).collect();
        Ok(Self { patterns, held: String::new(), stopped: None })
    }

    /// Takes the next piece of the answer. After a stop every further piece is dropped.
    pub fn push(&mut self, piece: &str) -> StopProgress {
        if self.stopped.is_some() {
            return StopProgress { text: String::new(), stopped: self.stopped };
        }
        let before = self.held.len();
        self.held.push_str(piece);
        for (at, byte) in piece.bytes().enumerate() {
            let mut complete: Option<(usize, usize)> = None;
            for (index, pattern) in self.patterns.iter_mut().enumerate() {
                let length = pattern.bytes.len();
                if pattern.step(byte) && complete.is_none_or(|(_, longest)| longest < length) {
                    complete = Some((index, length));
                }
            }
            if let Some((index, length)) = complete {
                self.stopped = Some(index);
                self.held.truncate(before + at + 1 - length);
                return StopProgress { text: std::mem::take(&mut self.held), stopped: self.stopped };
            }
        }
        let hold = self.patterns.iter().map(|pattern| pattern.matched).max().unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - hold);
        StopProgress { text: std::mem::replace(&mut self.held, rest), stopped: None }
    }

    /// Ends the answer and returns what was held back: the beginning of a stop string that never came.
    pub fn finish(self) -> String {
        self.held
    }

    /// The stop string that ended the answer, by its position in the list.
    pub fn stopped(&self) -> Option<usize> {
        self.stopped
    }
}
