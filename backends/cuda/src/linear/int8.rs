//! W8A8 products: `out[m, n] = (f32(sum over k of x[m, k] * w[n, k]) * w_scale[n]) * x_scale[m]`, the sums exact in i32.

use halite_hal::DType;

use crate::{
    compile::{Program, Source},
    driver::{LaunchShape, Parameters},
    launch::Launch,
};

/// The kernel's name in its module.
pub const KERNEL: &str = "linear_int8";
/// Beyond this many columns a sum may leave i32: 2^31 / 128^2, less one.
pub const LARGEST_K: u32 = 131_071;

static SOURCE: Source = Source::new("linear/int8.cu", include_str!("int8.cu"));

/// What a block computes, and by how many warps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tile {
    /// Rows of the result.
    pub m: u32,
    /// Columns of the result.
    pub n: u32,
    /// Columns of `x` and `w` that come to shared memory at a time.
    pub k: u32,
    /// Parts of K in shared memory: one is computed, the others come.
    pub stages: u32,
    /// Warps along M.
    pub warps_m: u32,
    /// Warps along N.
    pub warps_n: u32,
}

impl Tile {
    /// For the few rows of a decode step: weights are what is read, so many of their bytes are under way.
    pub const DECODE: Tile = Tile { m: 16, n: 64, k: 128, stages: 4, warps_m: 1, warps_n: 4 };
    /// For some dozens of rows.
    pub const MIDDLE: Tile = Tile { m: 64, n: 64, k: 128, stages: 3, warps_m: 2, warps_n: 2 };
    /// For prefill.
    pub const LARGE: Tile = Tile { m: 128, n: 128, k: 64, stages: 3, warps_m: 2, warps_n: 4 };
    /// All of them.
    pub const ALL: [Tile; 3] = [Tile::DECODE, Tile::MIDDLE, Tile::LARGE];

    /// Dynamic shared memory of a block, in bytes.
    pub fn shared_bytes(self) -> u32 {
        (self.m + self.n) * self.k * self.stages
    }

    /// The launch that computes `m` rows and `n` columns.
    pub fn launch(self, m: u32, n: u32) -> LaunchShape {
        LaunchShape::new(
            [m.div_ceil(self.m), n.div_ceil(self.n), 1],
            [32 * self.warps_m * self.warps_n, 1, 1],
        )
        .shared(self.shared_bytes())
    }
}

/// The type of the result's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Out {
    /// F32.
    F32,
    /// F16.
    F16,
    /// BF16.
    BF16,
    /// The sums themselves, not scaled.
    I32,
}

impl Out {
    /// All of them.
    pub const ALL: [Out; 4] = [Out::F32, Out::F16, Out::BF16, Out::I32];

    /// That of a tensor; none of others.
    pub(super) fn of(dtype: DType) -> Option<Self> {
        match dtype {
            DType::F32 => Some(Out::F32),
            DType::F16 => Some(Out::F16),
            DType::Bf16 => Some(Out::BF16),
            DType::I32 => Some(Out::I32),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Out::F32 => "f32",
            Out::F16 => "f16",
            Out::BF16 => "bf16",
            Out::I32 => "i32",
        }
    }
}

/// What divides the address and the stride of the rows of `x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Alignment {
    /// 16 bytes: copied while warps compute.
    Bytes16,
    /// Nothing but 1: byte by byte, through registers.
    Bytes1,
}

impl Alignment {
    /// All of them.
    pub const ALL: [Alignment; 2] = [Alignment::Bytes16, Alignment::Bytes1];

    fn bytes(self) -> u32 {
        match self {
            Alignment::Bytes16 => 16,
            Alignment::Bytes1 => 1,
        }
    }
}

/// The program of a form.
pub fn program(tile: Tile, out: Out, alignment: Alignment) -> Program {
    Program::new(&SOURCE)
        .define("BLOCK_M", tile.m)
        .define("BLOCK_N", tile.n)
        .define("BLOCK_K", tile.k)
        .define("STAGES", tile.stages)
        .define("WARPS_M", tile.warps_m)
        .define("WARPS_N", tile.warps_n)
        .define("X_ALIGN", alignment.bytes())
        .define("OUT", out.name())
}

/// The launch of a form that computes `m` rows and `n` columns, its parameters apart.
pub(super) fn launch(out: Out, alignment: Alignment, m: usize, n: usize) -> Launch {
    let tile = match m {
        0..=16 => Tile::DECODE,
        17..=64 => Tile::MIDDLE,
        _ => Tile::LARGE,
    };
    Launch::new("linear", &SOURCE, KERNEL)
        .constant("BLOCK_M", tile.m as usize)
        .constant("BLOCK_N", tile.n as usize)
        .constant("BLOCK_K", tile.k as usize)
        .constant("STAGES", tile.stages as usize)
        .constant("WARPS_M", tile.warps_m as usize)
        .constant("WARPS_N", tile.warps_n as usize)
        .constant("X_ALIGN", alignment.bytes() as usize)
        .word("OUT", out.name())
        .grid([m.div_ceil(tile.m as usize), n.div_ceil(tile.n as usize), 1])
        .block(32 * tile.warps_m * tile.warps_n)
        .shared(tile.shared_bytes() as usize)
}

pub(super) fn programs() -> Vec<Program> {
    let forms = |tile| Out::ALL.map(|out| Alignment::ALL.map(|alignment| program(tile, out, alignment)));
    Tile::ALL.into_iter().flat_map(forms).flatten().collect()
}

/// What the kernel is launched with. Addresses are the device's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelArgs {
    /// I8 `[m, k]`.
    pub x: u64,
    /// I8 `[n, k]`, at a multiple of 16.
    pub w: u64,
    /// F32 `[m]`; 0 where all are 1.
    pub x_scale: u64,
    /// F32 `[n]`; 0 where all are 1.
    pub w_scale: u64,
    /// `[m, n]`, of the program's [`Out`].
    pub out: u64,
    /// Bytes from one row of `x` to the next.
    pub x_stride: i64,
    /// Bytes from one row of `w` to the next: a multiple of 16.
    pub w_stride: i64,
    /// Elements from one row of `out` to the next.
    pub out_stride: i64,
    /// Rows of `x`.
    pub m: i32,
    /// Rows of `w`.
    pub n: i32,
    /// Columns of both, at most [`LARGEST_K`].
    pub k: i32,
}

impl KernelArgs {
    /// In the order of the kernel's parameters.
    pub fn parameters(&self) -> Parameters {
        let addresses = [self.x, self.w, self.x_scale, self.w_scale, self.out];
        let strides = [self.x_stride, self.w_stride, self.out_stride];
        let parameters = addresses.into_iter().fold(Parameters::new(), Parameters::u64);
        let parameters = strides.into_iter().fold(parameters, Parameters::i64);
        [self.m, self.n, self.k].into_iter().fold(parameters, Parameters::i32)
    }
}
