//! Makes a mixture of experts of a dense GGUF file of the Llama family, to the same answers.
//!
//! Each feed-forward layer of `ffn` columns becomes 8 experts of `ffn / 8`, all of them active, with a router of zeros:
//! each expert then weighs 1/8, and its second matrix is the dense one's columns times 8. Both factors are powers of two,
//! so the only difference left is the order of sums. Matrices stay Q4_1 blocks: the first two are cut between rows, the
//! third between blocks, whose scale and minimum take the factor.

use half::f16;

pub(crate) const EXPERTS: usize = 8;

/// Q4_1: 32 values a block, a scale and a minimum in F16, then the values.
const Q4_1: u32 = 3;
const BLOCK: usize = 32;
const BLOCK_BYTES: usize = 20;
const F32: u32 = 0;
/// What tensors' data are aligned to in files that do not say otherwise.
const ALIGNMENT: usize = 32;

struct Entry {
    name: String,
    /// Innermost first, as the file has them.
    dims: Vec<u64>,
    ty: u32,
    data: Vec<u8>,
}

/// The file's bytes as a mixture of experts.
pub(crate) fn split(dense: &[u8]) -> Vec<u8> {
    let mut reader = Reader { bytes: dense, at: 0 };
    assert_eq!(reader.take(4), b"GGUF");
    let version = reader.u32();
    let (tensors, keys) = (reader.u64(), reader.u64());
    let keys_start = reader.at;
    let mut ffn = None;
    for _ in 0..keys {
        let key = reader.string();
        let ty = reader.u32();
        if key == "llama.feed_forward_length" {
            ffn = Some(reader.at);
        }
        reader.skip(ty);
    }
    let mut metadata = dense[keys_start..reader.at].to_vec();
    let ffn_at = ffn.expect("a Llama file names its feed-forward layer's columns");
    let columns = u32::from_le_bytes(dense[ffn_at..ffn_at + 4].try_into().unwrap()) as usize;
    let width = columns / EXPERTS;
    assert!(columns == EXPERTS * width && width.is_multiple_of(BLOCK));
    metadata[ffn_at - keys_start..][..4].copy_from_slice(&(width as u32).to_le_bytes());
    for key in ["llama.expert_count", "llama.expert_used_count"] {
        metadata.extend((key.len() as u64).to_le_bytes());
        metadata.extend(key.bytes());
        metadata.extend(4u32.to_le_bytes()); // U32
        metadata.extend((EXPERTS as u32).to_le_bytes());
    }

    let infos: Vec<(String, Vec<u64>, u32, usize)> = (0..tensors)
        .map(|_| {
            let name = reader.string();
            let rank = reader.u32();
            let dims = (0..rank).map(|_| reader.u64()).collect();
            (name, dims, reader.u32(), reader.u64() as usize)
        })
        .collect();
    let data = &dense[reader.at.next_multiple_of(ALIGNMENT)..];
    let mut entries = Vec::new();
    for (name, dims, ty, offset) in infos {
        let end = data[offset..].len().min(bytes_of(&dims, ty));
        let data = data[offset..offset + end].to_vec();
        expert_entries(Entry { name, dims, ty, data }, width, &mut entries);
    }
    write(version, keys + 2, &metadata, &entries)
}

fn bytes_of(dims: &[u64], ty: u32) -> usize {
    let values = dims.iter().product::<u64>() as usize;
    match ty {
        F32 => 4 * values,
        Q4_1 => values / BLOCK * BLOCK_BYTES,
        8 => values / 32 * 34, // Q8_0
        other => panic!("type {other} is not expected in the default model"),
    }
}

/// What a dense tensor becomes.
fn expert_entries(mut entry: Entry, width: usize, entries: &mut Vec<Entry>) {
    let part = ["ffn_gate.", "ffn_up.", "ffn_down."].into_iter().find(|part| entry.name.contains(part));
    let Some(part) = part else {
        entries.push(entry);
        return;
    };
    assert_eq!(entry.ty, Q4_1, "{}", entry.name);
    let experts = EXPERTS as u64;
    if part == "ffn_down." {
        let rows = entry.dims[1] as usize;
        let (row_bytes, part_bytes) = (EXPERTS * width / BLOCK * BLOCK_BYTES, width / BLOCK * BLOCK_BYTES);
        let cut =
            |expert: usize, row: usize| &entry.data[row * row_bytes + expert * part_bytes..][..part_bytes];
        let parts = (0..EXPERTS).flat_map(|expert| (0..rows).map(move |row| (expert, row)));
        let data = parts.flat_map(|(expert, row)| cut(expert, row).chunks(BLOCK_BYTES)).flat_map(times_8);
        entry = Entry { data: data.collect(), dims: vec![width as u64, rows as u64, experts], ..entry };
    } else {
        if part == "ffn_gate." {
            let hidden = entry.dims[0];
            entries.push(Entry {
                name: entry.name.replace("ffn_gate", "ffn_gate_inp"),
                dims: vec![hidden, experts],
                ty: F32,
                data: vec![0; 4 * hidden as usize * EXPERTS],
            });
        }
        entry.dims = vec![entry.dims[0], width as u64, experts];
    }
    entry.name = entry.name.replace(part, &part.replace('.', "_exps."));
    entries.push(entry);
}

/// A block whose values are 8 times as large: exactly, since no scale of the default model is near the end of F16.
fn times_8(block: &[u8]) -> Vec<u8> {
    let mut out = block.to_vec();
    for factor in out[..4].chunks_exact_mut(2) {
        let value = f16::from_le_bytes([factor[0], factor[1]]).to_f32();
        let eight = f16::from_f32(8.0 * value);
        assert_eq!(eight.to_f32(), 8.0 * value);
        factor.copy_from_slice(&eight.to_le_bytes());
    }
    out
}

fn write(version: u32, keys: u64, metadata: &[u8], entries: &[Entry]) -> Vec<u8> {
    let mut out = b"GGUF".to_vec();
    out.extend(version.to_le_bytes());
    out.extend((entries.len() as u64).to_le_bytes());
    out.extend(keys.to_le_bytes());
    out.extend(metadata);
    let mut offset = 0;
    for Entry { name, dims, ty, data } in entries {
        out.extend((name.len() as u64).to_le_bytes());
        out.extend(name.bytes());
        out.extend((dims.len() as u32).to_le_bytes());
        dims.iter().for_each(|dim| out.extend(dim.to_le_bytes()));
        out.extend(ty.to_le_bytes());
        out.extend((offset as u64).to_le_bytes());
        offset += data.len().next_multiple_of(ALIGNMENT);
    }
    for entry in entries {
        out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
        out.extend(&entry.data);
    }
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
    out
}

/// A cursor over a file that the engine's own reader has accepted.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> &'a [u8] {
        self.at += len;
        &self.bytes[self.at - len..self.at]
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().unwrap())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take(8).try_into().unwrap())
    }

    fn string(&mut self) -> String {
        let len = self.u64() as usize;
        String::from_utf8(self.take(len).to_vec()).unwrap()
    }

    /// Passes over a value of a type.
    fn skip(&mut self, ty: u32) {
        match ty {
            0 | 1 | 7 => drop(self.take(1)),
            2 | 3 => drop(self.take(2)),
            4..=6 => drop(self.take(4)),
            10..=12 => drop(self.take(8)),
            8 => {
                let len = self.u64() as usize;
                self.take(len);
            }
            9 => {
                let (ty, count) = (self.u32(), self.u64());
                (0..count).for_each(|_| self.skip(ty));
            }
            other => panic!("a value of type {other}"),
        }
    }
}
