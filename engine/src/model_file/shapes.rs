//! Holding a model's tensors against its hyper-parameters: shapes and types are checked before anything is converted.

use super::{LayerPart, ModelConfig, ModelError, Part, StoredTensor, Tensors};
use crate::Result;
use crate::quoted::quoted;
use std::collections::{BTreeMap, BTreeSet};

/// Checks that the file has every tensor in its shape, and none that would be passed over.
pub(super) fn check_tensors<F: Tensors + ?Sized>(
    file: &F,
    stored: &[StoredTensor<'_>],
    config: &ModelConfig,
) -> Result<()> {
    let stored: BTreeMap<&str, &[usize]> = stored.iter().map(|tensor| (tensor.name, tensor.shape)).collect();
    let mut expected = BTreeSet::new();
    let mut check = |part: Part, shape: &[usize]| -> Result<()> {
        let name = file.tensor_name(part);
        let shape = file.stored_shape(part, shape, config);
        check_shape(stored.get(name.as_str()).copied(), &name, &shape)?;
        // Its elements are of a type that is read.
        file.tensor(part)?;
        expected.insert(name);
        Ok(())
    };
    let table = [config.vocabulary, config.hidden];
    check(Part::Embedding, &table)?;
    check(Part::FinalNorm, &[config.hidden])?;
    if !config.tied {
        check(Part::Output, &table)?;
    }
    // A file that claims a thousand layers more than it has ends at the first.
    let parts = LayerPart::shapes(config);
    for layer in 0..config.layers {
        for (part, shape) in &parts {
            check(Part::Layer(layer, *part), shape)?;
        }
    }
    let unknown = |name: &&str| !expected.contains(*name) && !file.is_passed_over(name, config);
    match stored.into_keys().find(unknown) {
        Some(unknown) => Err(ModelError::UnknownTensor {
            tensor: quoted(unknown),
            architecture: config.architecture.clone(),
        }
        .into()),
        None => Ok(()),
    }
}

fn check_shape(got: Option<&[usize]>, name: &str, expected: &[usize]) -> std::result::Result<(), ModelError> {
    let (tensor, expected) = (name.to_owned(), expected.to_vec());
    match got {
        None => Err(ModelError::MissingTensor { tensor, expected }),
        Some(got) if got != expected => Err(ModelError::TensorShape { tensor, expected, got: got.to_vec() }),
        Some(_) => Ok(()),
    }
}
