//! What a kernel is called with.

/// The arguments of a launch, in the order of the kernel's parameters. Each must have its parameter's size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    pub(crate) values: Vec<Vec<u8>>,
}

impl Arguments {
    /// None yet.
    pub fn new() -> Arguments {
        Arguments::default()
    }

    /// And these bytes: a parameter of any type, as the device sees it (little endian).
    pub fn bytes(mut self, bytes: &[u8]) -> Arguments {
        self.values.push(bytes.to_vec());
        self
    }

    /// And an address.
    pub fn pointer(self, address: u64) -> Arguments {
        self.bytes(&address.to_le_bytes())
    }

    /// And a `u32`.
    pub fn u32(self, value: u32) -> Arguments {
        self.bytes(&value.to_le_bytes())
    }

    /// And an `i32`.
    pub fn i32(self, value: i32) -> Arguments {
        self.bytes(&value.to_le_bytes())
    }

    /// And a `u64`.
    pub fn u64(self, value: u64) -> Arguments {
        self.bytes(&value.to_le_bytes())
    }

    /// And an `i64`.
    pub fn i64(self, value: i64) -> Arguments {
        self.bytes(&value.to_le_bytes())
    }

    /// And an `f32`.
    pub fn f32(self, value: f32) -> Arguments {
        self.bytes(&value.to_le_bytes())
    }

    /// And an `f64`.
    pub fn f64(self, value: f64) -> Arguments {
        self.bytes(&value.to_le_bytes())
    }
}
