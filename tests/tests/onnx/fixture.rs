//! Reading a fixture: safetensors, by its published format.

use halite_parity::Fault;
use serde_json::Value;
use std::{fs, path::Path};

/// One tensor.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) dims: Vec<usize>,
    pub(crate) values: Vec<f64>,
}

impl Array {
    pub(crate) fn floats(&self) -> Vec<f32> {
        self.values.iter().map(|&x| x as f32).collect()
    }

    /// Where dimension `axis` and those within it begin and end: (outer elements, inner elements).
    pub(crate) fn split(&self, axis: usize) -> (usize, usize) {
        (self.dims[..axis].iter().product(), self.dims[axis..].iter().product())
    }
}

/// One node test.
#[derive(Debug)]
pub(crate) struct Fixture {
    pub(crate) name: String,
    header: Value,
    attributes: Value,
    data: Vec<u8>,
}

fn wrong(name: &str, what: &str) -> Fault {
    Fault::new(format!("fixture {name}: {what}"))
}

impl Fixture {
    fn open(path: &Path) -> Result<Self, Fault> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = fs::read(path).map_err(|error| wrong(&name, &error.to_string()))?;
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(|| wrong(&name, "too short"))?;
        let length = u64::from_le_bytes(*length) as usize;
        let (header, data) = rest.split_at_checked(length).ok_or_else(|| wrong(&name, "no header"))?;
        let header: Value =
            serde_json::from_slice(header).map_err(|error| wrong(&name, &error.to_string()))?;
        let attributes = header["__metadata__"]["attributes"].as_str().unwrap_or("{}");
        let attributes =
            serde_json::from_str(attributes).map_err(|error| wrong(&name, &error.to_string()))?;
        Ok(Fixture { name, attributes, header, data: data.to_vec() })
    }

    /// An attribute as a number.
    pub(crate) fn attribute(&self, name: &str) -> Option<f64> {
        self.attributes[name].as_f64()
    }

    /// Whether there is such a tensor.
    pub(crate) fn has(&self, tensor: &str) -> bool {
        self.header.get(tensor).is_some()
    }

    /// A tensor, by its name.
    pub(crate) fn array(&self, tensor: &str) -> Result<Array, Fault> {
        let entry = self.header.get(tensor).ok_or_else(|| wrong(&self.name, &format!("no {tensor}")))?;
        let numbers = |field: &str| -> Vec<usize> {
            let list = entry[field].as_array().map(Vec::as_slice).unwrap_or_default();
            list.iter().filter_map(Value::as_u64).map(|number| number as usize).collect()
        };
        let (dims, offsets) = (numbers("shape"), numbers("data_offsets"));
        let bytes = offsets.first().zip(offsets.get(1)).and_then(|(&start, &end)| self.data.get(start..end));
        let bytes = bytes.ok_or_else(|| wrong(&self.name, &format!("no data of {tensor}")))?;
        let values: Vec<f64> = match entry["dtype"].as_str() {
            Some("F32") => words(bytes, |b: [u8; 4]| f64::from(f32::from_le_bytes(b))),
            Some("I32") => words(bytes, |b: [u8; 4]| f64::from(i32::from_le_bytes(b))),
            Some("I64") => words(bytes, |b: [u8; 8]| i64::from_le_bytes(b) as f64),
            Some("U8") => bytes.iter().map(|&b| f64::from(b)).collect(),
            other => return Err(wrong(&self.name, &format!("{tensor} is {other:?}"))),
        };
        if values.len() != dims.iter().product::<usize>() {
            return Err(wrong(&self.name, &format!("{tensor} has another size than its shape")));
        }
        Ok(Array { dims, values })
    }
}

fn words<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f64) -> Vec<f64> {
    bytes.as_chunks::<N>().0.iter().map(|&word| read(word)).collect()
}

/// All fixtures whose names begin like this; there must be `count` of them, so that none is lost unnoticed.
pub(crate) fn fixtures(prefix: &str, count: usize) -> Result<Vec<Fixture>, Fault> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/onnx");
    let entries = fs::read_dir(&folder).map_err(|error| Fault::new(format!("fixtures/onnx: {error}")))?;
    let mut paths: Vec<_> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    paths.sort();
    let named = |path: &&std::path::PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(prefix) && name.ends_with(".safetensors")
    };
    let found: Vec<Fixture> =
        paths.iter().filter(named).map(|path| Fixture::open(path)).collect::<Result<_, _>>()?;
    if found.len() == count {
        Ok(found)
    } else {
        Err(Fault::new(format!("{} fixtures of {prefix} where {count} were expected", found.len())))
    }
}
