//! Which files of a repository make the model.

use super::listing::{ListedFile, Listing};
use super::name::is_plain_path;
use super::{HubError, HubModel};
use crate::safetensors::index::{INDEX_FILE, Index, is_shard_name};

/// What a model folder holds beside its weights, where the repository has it: every file that the engine reads.
const BESIDE_WEIGHTS: &[&str] = &[
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "additional_chat_templates/tool_use.jinja",
    "special_tokens_map.json",
];
const CONFIG: &str = "config.json";
const WHOLE_MODEL: &str = "model.safetensors";
/// Names quoted in an error.
const SHOWN: usize = 8;

/// What is to be fetched.
#[derive(Debug)]
pub(super) enum Selection<'a> {
    /// A folder with one file of weights.
    Folder(Vec<&'a ListedFile>),
    /// A folder whose index, once it is here, names the shards.
    Sharded(&'a ListedFile, Vec<&'a ListedFile>),
    /// A GGUF file.
    Gguf(&'a ListedFile),
}

/// Chooses: the GGUF file that was asked for; else the safetensors and what goes with them; else the one GGUF file.
pub(super) fn choose<'a>(listing: &'a Listing, model: &HubModel) -> Result<Selection<'a>, HubError> {
    let repo = || listing.repo.clone();
    let ggufs: Vec<_> = listing.files.iter().filter(|file| file.name.ends_with(".gguf")).collect();
    if let Some(hostile) = ggufs.iter().find(|file| !is_plain_path(&file.name)) {
        return Err(HubError::HostileName { repo: repo(), name: hostile.name.clone() });
    }
    let files = || ggufs.iter().map(|file| (file.name.clone(), file.bytes)).collect();
    if let Some(file) = model.file() {
        let found = ggufs.iter().find(|listed| listed.name == file).copied();
        return found.map(Selection::Gguf).ok_or_else(|| HubError::NoSuchFile {
            repo: repo(),
            file: file.to_owned(),
            files: files(),
        });
    }
    let beside = || BESIDE_WEIGHTS.iter().filter_map(|name| listing.find(name));
    let weights = listing.find(WHOLE_MODEL).or_else(|| only_safetensors(listing));
    let index = listing.find(INDEX_FILE);
    let has_config = listing.find(CONFIG).is_some();
    match (weights, index, &*ggufs) {
        (Some(weights), _, _) if has_config => Ok(Selection::Folder(beside().chain([weights]).collect())),
        (None, Some(index), _) if has_config => Ok(Selection::Sharded(index, beside().collect())),
        (_, _, [file]) => Ok(Selection::Gguf(file)),
        (_, _, [_, ..]) => Err(HubError::ChooseFile { repo: repo(), files: files() }),
        (Some(_), _, []) | (_, Some(_), []) => {
            Err(HubError::NoModel { repo: repo(), reason: "it has weights but no config.json".into() })
        }
        (None, None, []) => Err(HubError::NoModel { repo: repo(), reason: contents(listing) }),
    }
}

/// The shards that the index names.
pub(super) fn shards<'a>(listing: &'a Listing, index: &[u8]) -> Result<Vec<&'a ListedFile>, HubError> {
    let index = Index::parse(index)
        .map_err(|source| HubError::BadIndex { repo: listing.repo.clone(), source: Box::new(source) })?;
    let listed = |name: &str| {
        listing.find(name).ok_or_else(|| HubError::NoModel {
            repo: listing.repo.clone(),
            reason: format!("its index names a shard {name:?} that it does not have"),
        })
    };
    index.shards.iter().map(|name| listed(name)).collect()
}

/// The repository's only safetensors file, at its top, if there is no index.
fn only_safetensors(listing: &Listing) -> Option<&ListedFile> {
    let mut files = listing.files.iter().filter(|file| is_shard_name(&file.name));
    let only = files.next().filter(|_| files.next().is_none())?;
    listing.find(INDEX_FILE).is_none().then_some(only)
}

fn contents(listing: &Listing) -> String {
    let names: Vec<_> = listing.files.iter().take(SHOWN).map(|file| format!("{:?}", file.name)).collect();
    let more = if listing.files.len() > SHOWN { ", ..." } else { "" };
    format!(
        "there is neither model.safetensors nor its index nor a .gguf file, but {}{more}",
        if names.is_empty() { "nothing".into() } else { names.join(", ") }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(names: &[&str]) -> Listing {
        let file = |name: &&str| ListedFile { name: (*name).to_owned(), bytes: Some(1), content: None };
        Listing { repo: "a/b".into(), commit: "0".repeat(40), files: names.iter().map(file).collect() }
    }

    /// Names of the chosen files; the index first.
    fn chosen(names: &[&str], file: Option<&str>) -> Result<Vec<String>, HubError> {
        let listing = listing(names);
        let model = HubModel::parse("a/b")?;
        let model = match file {
            Some(file) => model.with_file(file)?,
            None => model,
        };
        let files = match choose(&listing, &model)? {
            Selection::Folder(files) => files,
            Selection::Sharded(index, files) => [index].into_iter().chain(files).collect(),
            Selection::Gguf(file) => vec![file],
        };
        Ok(files.into_iter().map(|file| file.name.clone()).collect())
    }

    #[test]
    fn a_folder_is_its_weights_and_what_goes_with_them() {
        let names = [
            "README.md",
            "pytorch_model.bin",
            "config.json",
            "model.safetensors",
            "tokenizer.json",
            "x.gguf",
        ];
        assert_eq!(chosen(&names, None).unwrap(), ["config.json", "tokenizer.json", "model.safetensors"]);
        assert_eq!(chosen(&names, Some("x.gguf")).unwrap(), ["x.gguf"]);
        let names = ["config.json", "weights.safetensors", "onnx/other.safetensors"];
        assert_eq!(chosen(&names, None).unwrap(), ["config.json", "weights.safetensors"]);
        let names = ["config.json", INDEX_FILE, "model-1.safetensors"];
        assert_eq!(chosen(&names, None).unwrap(), [INDEX_FILE, "config.json"]);
    }

    /// The sources that open files of a model folder name no file that a pull leaves behind.
    #[test]
    fn whatever_the_engine_reads_comes_along() {
        let sources = [
            include_str!("../../text/folder.rs"),
            include_str!("../../model_file/folder.rs"),
            include_str!("../../model_file/generation.rs"),
        ];
        let literals = sources.into_iter().flat_map(|source| source.split('"').skip(1).step_by(2));
        let read: Vec<_> =
            literals.filter(|text| text.ends_with(".json") || text.ends_with(".jinja")).collect();
        assert!(read.contains(&"config.json") && read.contains(&"generation_config.json"), "{read:?}");
        for name in &read {
            assert!(BESIDE_WEIGHTS.contains(name), "{name:?} is read and not fetched");
        }
        assert!(BESIDE_WEIGHTS.iter().all(|name| is_plain_path(name)));
        let names = [&["model.safetensors"], &*read].concat();
        let chosen = chosen(&names, None).unwrap();
        assert!(names.iter().all(|name| chosen.iter().any(|chosen| chosen == name)), "{chosen:?}");
    }

    #[test]
    fn the_one_gguf_file_or_a_list_of_them() {
        assert_eq!(chosen(&["README.md", "Q4/x.gguf"], None).unwrap(), ["Q4/x.gguf"]);
        let error = chosen(&["a.gguf", "b.gguf"], None).unwrap_err().to_string();
        assert!(error.contains("--file NAME") && error.contains("\n  a.gguf (1 MB)\n  b.gguf"), "{error}");
        let error = chosen(&["a.gguf", "b.gguf"], Some("c.gguf")).unwrap_err().to_string();
        assert!(error.contains("c.gguf") && error.contains("\n  b.gguf"), "{error}");
    }

    #[test]
    fn what_cannot_be_run_is_said() {
        for (names, part) in [
            (&["pytorch_model.bin"][..], "\"pytorch_model.bin\""),
            (&[], "nothing"),
            (&["adapter_model.safetensors"], "no config.json"),
            (&["config.json", "a.safetensors", "b.safetensors"], "\"a.safetensors\""),
        ] {
            let error = chosen(names, None).unwrap_err();
            assert!(matches!(error, HubError::NoModel { .. }) && error.to_string().contains(part), "{error}");
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["../x.gguf", "/x.gguf", "a/../../x.gguf", "a\\x.gguf", ".x.gguf", "C:x.gguf"] {
            let error = chosen(&[name], None).unwrap_err();
            assert!(matches!(error, HubError::HostileName { .. }), "{name}: {error}");
        }
        let listing = listing(&["config.json"]);
        for name in ["../x.safetensors", "/x.safetensors", "a/x.safetensors"] {
            let index = format!(r#"{{"weight_map":{{"w":"{name}"}}}}"#);
            let error = shards(&listing, index.as_bytes()).unwrap_err();
            assert!(matches!(error, HubError::BadIndex { .. }), "{name}: {error}");
        }
        let error = shards(&listing, br#"{"weight_map":{"w":"x.safetensors"}}"#).unwrap_err();
        assert!(error.to_string().contains("x.safetensors"), "{error}");
    }
}
