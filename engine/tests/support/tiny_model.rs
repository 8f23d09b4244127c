//! A Llama model of a few thousand weights as a GGUF file in memory, right unless a test breaks it.

use std::collections::BTreeMap;

/// A metadata value.
#[derive(Clone)]
pub(crate) enum Value {
    U32(u32),
    U64(u64),
    F32(f32),
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
}

pub(crate) const VOCABULARY: usize = 67;
/// More than two of the parts that attention cuts keys and values into.
pub(crate) const CONTEXT: usize = 700;

impl TinyModel {
    /// Two layers, 40 wide, 6 query heads on 2 KV heads of 8, 56 between, tied. No size is a multiple of a tile.
    pub(crate) fn new(seed: u64) -> Self {
        let (hidden, heads, kv_heads, head_dim, ffn, layers) = (40, 6, 2, 8, 56, 2);
        let mut model = Self { keys: BTreeMap::new(), tensors: BTreeMap::new() };
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
        let mut out = b"GGUF".to_vec();
        out.extend(3u32.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.keys.len() as u64).to_le_bytes());
        for (key, value) in &self.keys {
            put_str(&mut out, key);
            put_value(&mut out, value);
        }
        let mut offset = 0u64;
        for (name, tensor) in &self.tensors {
            put_str(&mut out, name);
            out.extend((tensor.shape.len() as u32).to_le_bytes());
            tensor.shape.iter().rev().for_each(|&dim| out.extend((dim as u64).to_le_bytes()));
            out.extend(0u32.to_le_bytes());
            out.extend(offset.to_le_bytes());
            offset = (offset + 4 * tensor.values.len() as u64).next_multiple_of(32);
        }
        for tensor in self.tensors.values() {
            out.resize(out.len().next_multiple_of(32), 0);
            tensor.values.iter().for_each(|value| out.extend(value.to_le_bytes()));
        }
        out
    }
}

fn put_str(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn put_value(out: &mut Vec<u8>, value: &Value) {
    let mut put = |id: u32, bytes: &[u8]| {
        out.extend(id.to_le_bytes());
        out.extend(bytes);
    };
    match value {
        Value::U32(x) => put(4, &x.to_le_bytes()),
        Value::F32(x) => put(6, &x.to_le_bytes()),
        Value::U64(x) => put(10, &x.to_le_bytes()),
        Value::Str(text) => {
            put(8, &[]);
            put_str(out, text);
        }
        Value::Strs(texts) => {
            put(9, &8u32.to_le_bytes());
            out.extend((texts.len() as u64).to_le_bytes());
            texts.iter().for_each(|text| put_str(out, text));
        }
        Value::I32s(values) => {
            put(9, &5u32.to_le_bytes());
            out.extend((values.len() as u64).to_le_bytes());
            values.iter().for_each(|value| out.extend(value.to_le_bytes()));
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
