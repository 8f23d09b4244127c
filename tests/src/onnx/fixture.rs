//! Reading a fixture: safetensors, by its published format.

use crate::Fault;
use serde_json::Value;
use std::{fs, path::Path};

/// One tensor.
#[derive(Clone, Debug)]
pub(super) struct Array {
    pub(super) dims: Vec<usize>,
    pub(super) values: Vec<f64>,
}

impl Array {
    pub(super) fn floats(&self) -> Vec<f32> {
        self.values.iter().map(|&x| x as f32).collect()
    }

    /// The same elements with dimension `axis` innermost, so that rows along it are contiguous.
    pub(super) fn innermost(&self, axis: usize) -> Array {
        let (along, inner) = (self.dims[axis], self.dims[axis + 1..].iter().product::<usize>());
        let outer = self.dims[..axis].iter().product::<usize>();
        let rows = (0..outer * inner).flat_map(|row| {
            let start = row / inner.max(1) * along * inner + row % inner.max(1);
            (0..along).map(move |place| start + place * inner)
        });
        let mut dims = self.dims.clone();
        let moved = dims.remove(axis);
        dims.push(moved);
        Array { dims, values: rows.map(|place| self.values[place]).collect() }
    }

    /// Where dimension `axis` and those within it begin and end: (outer elements, inner elements).
    pub(super) fn split(&self, axis: usize) -> (usize, usize) {
        (self.dims[..axis].iter().product(), self.dims[axis..].iter().product())
    }
}

/// One node test.
#[derive(Debug)]
pub(super) struct Fixture {
    pub(super) name: String,
    /// The ONNX operator.
    pub(super) op: String,
    /// The version of ONNX's operators that it was made for; 0 where it does not say.
    pub(super) opset: u64,
    header: Value,
    attributes: Value,
    data: Vec<u8>,
}

fn wrong(name: &str, what: &str) -> Fault {
    Fault::new(format!("fixture {name}: {what}"))
}

impl Fixture {
    pub(super) fn open(path: &Path) -> Result<Self, Fault> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = fs::read(path).map_err(|error| wrong(&name, &error.to_string()))?;
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(|| wrong(&name, "too short"))?;
        let length = u64::from_le_bytes(*length) as usize;
        let (header, data) = rest.split_at_checked(length).ok_or_else(|| wrong(&name, "no header"))?;
        let header: Value =
            serde_json::from_slice(header).map_err(|error| wrong(&name, &error.to_string()))?;
        let metadata = &header["__metadata__"];
        let op = metadata["op"].as_str().ok_or_else(|| wrong(&name, "no operator"))?.to_owned();
        let opset = metadata["opset"].as_str().and_then(|opset| opset.parse().ok()).unwrap_or(0);
        let attributes = metadata["attributes"].as_str().unwrap_or("{}");
        let attributes =
            serde_json::from_str(attributes).map_err(|error| wrong(&name, &error.to_string()))?;
        Ok(Fixture { name, op, opset, attributes, header, data: data.to_vec() })
    }

    /// An attribute as a number.
    pub(super) fn attribute(&self, name: &str) -> Option<f64> {
        self.attributes[name].as_f64()
    }

    /// Whether there is such a tensor.
    pub(super) fn has(&self, tensor: &str) -> bool {
        self.header.get(tensor).is_some()
    }

    /// A tensor's element type, as safetensors names it.
    pub(super) fn dtype(&self, tensor: &str) -> Option<&str> {
        self.header[tensor]["dtype"].as_str()
    }

    /// A tensor's number of dimensions.
    pub(super) fn rank(&self, tensor: &str) -> Option<usize> {
        self.header[tensor]["shape"].as_array().map(Vec::len)
    }

    /// A tensor, by its name.
    pub(super) fn array(&self, tensor: &str) -> Result<Array, Fault> {
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
            Some("F64") => words(bytes, f64::from_le_bytes),
            Some("F16") => words(bytes, |b: [u8; 2]| half::f16::from_le_bytes(b).to_f64()),
            Some("I8") => bytes.iter().map(|&b| f64::from(b as i8)).collect(),
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
