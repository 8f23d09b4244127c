//! A Llama model of a few thousand weights as a GGUF file in memory, right unless a test breaks it.

#[path = "../../src/gguf/test_writer.rs"]
mod gguf_writer;

use gguf_writer::{Writer, string};
use std::collections::BTreeMap;

/// A metadata value.
#[derive(Clone)]
pub(crate) enum Value {
    U32(u32),
    U64(u64),
    F32(f32),
    Bool(bool),
    Str(String),
    Strs(Vec<String>),
    I32s(Vec<i32>),
}

/// A tensor: its shape, outermost first, and its F32 values.
#[derive(Clone)]
pub(crate) struct TinyTensor {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f32>,
}

/// Keys and tensors by name; change them at will.
#[derive(Clone)]
pub(crate) struct TinyModel {
    pub(crate) keys: BTreeMap<String, Value>,
    pub(crate) tensors: BTreeMap<String, TinyTensor>,
    /// Tensors that the file has in another type than F32: the type's number and the bytes.
    pub(crate) stored: BTreeMap<String, (u32, Vec<u8>)>,
}

pub(crate) const VOCABULARY: usize = 67;
/// More than two of the parts that attention cuts keys and values into.
pub(crate) const CONTEXT: usize = 700;

impl TinyModel {
    /// Two layers, 40 wide, 6 query heads on 2 KV heads of 8, 56 between, tied. No size is a multiple of a tile.
    pub(crate) fn new(seed: u64) -> Self {
        Self::sized(seed, [40, 6, 2, 8, 56])
    }

    /// As [`Self::new`], but of widths that blocks of 256 fill: 256, 8 query heads on 2 KV heads of 32, 256 between.
    pub(crate) fn wide(seed: u64) -> Self {
        Self::sized(seed, [256, 8, 2, 32, 256])
    }

    fn sized(seed: u64, [hidden, heads, kv_heads, head_dim, ffn]: [usize; 5]) -> Self {
        let layers = 2;
        let mut model = Self { keys: BTreeMap::new(), tensors: BTreeMap::new(), stored: BTreeMap::new() };
        model.set("general.architecture", Value::Str("llama".to_owned()));
        model.set("general.name", Value::Str("tiny".to_owned()));
        for (key, value) in [
            ("block_count", layers),
            ("context_length", CONTEXT),
            ("embedding_length", hidden),
            ("feed_forward_length", ffn),
            ("attention.head_count", heads),
            ("attention.head_count_kv", kv_heads),
            ("attention.key_length", head_dim),
            ("rope.dimension_count", head_dim),
        ] {
            model.set(&format!("llama.{key}"), Value::U32(value as u32));
        }
        model.set("llama.attention.layer_norm_rms_epsilon", Value::F32(1e-5));
        model.vocabulary();

        let mut random = Random(seed);
        let mut matrix = |name: String, rows: usize, columns: usize, size: f32| {
            let values = (0..rows * columns).map(|_| random.next() * size).collect();
            model.tensors.insert(name, TinyTensor { shape: vec![rows, columns], values });
        };
        matrix("token_embd.weight".to_owned(), VOCABULARY, hidden, 1.0);
        for layer in 0..layers {
            let mut weight = |name: &str, rows, columns| {
                matrix(format!("blk.{layer}.{name}.weight"), rows, columns, 2.0 / (columns as f32).sqrt());
            };
            weight("attn_q", heads * head_dim, hidden);
            weight("attn_k", kv_heads * head_dim, hidden);
            weight("attn_v", kv_heads * head_dim, hidden);
            weight("attn_output", hidden, heads * head_dim);
            weight("ffn_gate", ffn, hidden);
            weight("ffn_up", ffn, hidden);
            weight("ffn_down", hidden, ffn);
        }
        let norms = (0..layers).flat_map(|layer| {
            [format!("blk.{layer}.attn_norm.weight"), format!("blk.{layer}.ffn_norm.weight")]
        });
        for name in norms.chain(["output_norm.weight".to_owned()]) {
            let values = (0..hidden).map(|_| 1.0 + 0.1 * random.next()).collect();
            model.tensors.insert(name, TinyTensor { shape: vec![hidden], values });
        }
        model
    }

    /// One token a letter, and an end token.
    fn vocabulary(&mut self) {
        let letters = (0..VOCABULARY - 1).map(|i| char::from(b'!' + i as u8).to_string());
        let tokens: Vec<String> = letters.chain(["<end>".to_owned()]).collect();
        let types = (0..VOCABULARY).map(|i| if i == VOCABULARY - 1 { 3 } else { 1 }).collect();
        self.set("tokenizer.ggml.model", Value::Str("gpt2".to_owned()));
        self.set("tokenizer.ggml.pre", Value::Str("gpt-2".to_owned()));
        self.set("tokenizer.ggml.tokens", Value::Strs(tokens));
        self.set("tokenizer.ggml.merges", Value::Strs(Vec::new()));
        self.set("tokenizer.ggml.token_type", Value::I32s(types));
        self.set("tokenizer.ggml.eos_token_id", Value::U32(VOCABULARY as u32 - 1));
    }

    pub(crate) fn set(&mut self, key: &str, value: Value) {
        self.keys.insert(key.to_owned(), value);
    }

    /// An output layer apart from the embedding table.
    pub(crate) fn untie(&mut self, seed: u64) {
        let mut output = self.tensors["token_embd.weight"].clone();
        let mut random = Random(seed);
        output.values.iter_mut().for_each(|value| *value = random.next());
        self.tensors.insert("output.weight".to_owned(), output);
    }

    /// The file's bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        for (key, value) in &self.keys {
            let (ty, bytes) = value.encoded();
            writer = writer.entry(key, ty, bytes);
        }
        let mut data = Vec::new();
        for (name, tensor) in &self.tensors {
            data.resize(data.len().next_multiple_of(32), 0);
            let dims: Vec<u64> = tensor.shape.iter().rev().map(|&dim| dim as u64).collect();
            let floats = || tensor.values.iter().flat_map(|value| value.to_le_bytes()).collect();
            let (ty, bytes) = self.stored.get(name).cloned().unwrap_or_else(|| (0, floats()));
            writer = writer.tensor(name, &dims, ty, data.len() as u64);
            data.extend(bytes);
        }
        writer.data(data).bytes()
    }
}

impl Value {
    /// The type's number in the file, and the bytes after it.
    fn encoded(&self) -> (u32, Vec<u8>) {
        let array = |ty: u32, count: usize, elements: Vec<u8>| {
            [&ty.to_le_bytes()[..], &(count as u64).to_le_bytes(), &elements].concat()
        };
        match self {
            Value::U32(x) => (4, x.to_le_bytes().to_vec()),
            Value::F32(x) => (6, x.to_le_bytes().to_vec()),
            Value::Bool(x) => (7, vec![u8::from(*x)]),
            Value::U64(x) => (10, x.to_le_bytes().to_vec()),
            Value::Str(text) => (8, string(text)),
            Value::Strs(texts) => (9, array(8, texts.len(), texts.iter().flat_map(string).collect())),
            Value::I32s(x) => (9, array(5, x.len(), x.iter().flat_map(|x| x.to_le_bytes()).collect())),
        }
    }
}

/// Numbers from -1 to 1 by SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    pub(crate) fn tokens(&mut self, count: usize, vocabulary: usize) -> Vec<u32> {
        (0..count).map(|_| (self.bits() % vocabulary as u64) as u32).collect()
    }
}
