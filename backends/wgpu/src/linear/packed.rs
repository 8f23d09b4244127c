//! Weights packed for this backend: made, saved and restored.

use super::{
    layout::{Layout, PANEL, panels, panels_a_result},
    pack::Packer,
};
use crate::{
    device::{CHUNK, Wgpu},
    memory::WgpuBuffer,
    operand::Operand,
    stream::WgpuStream,
};
use halite_hal::{DType, Device, Error, Pending, Result, Storage};
use halite_kernels::{
    Checked,
    linear::{HostWeights, Linear, LinearSpec},
    saved_weights,
};
use std::{ops::Range, sync::Arc};

/// Packed weights: a counted handle. One layout serves every number of rows.
#[derive(Clone, Debug)]
pub struct WgpuPacked(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    spec: LinearSpec,
    layout: Layout,
    pieces: Vec<Piece>,
}

/// Successive panels, as many as one kernel can reach.
#[derive(Debug)]
pub(super) struct Piece {
    buffer: WgpuBuffer,
    pub(super) panels: Range<usize>,
}

impl Piece {
    pub(super) fn operand(&self) -> Operand {
        Operand::bytes(&self.buffer, 0..self.buffer.len(), DType::U8)
    }
}

impl AsRef<LinearSpec> for WgpuPacked {
    fn as_ref(&self) -> &LinearSpec {
        &self.0.spec
    }
}

impl WgpuPacked {
    pub(super) fn layout(&self) -> &Layout {
        &self.0.layout
    }

    pub(super) fn pieces(&self) -> &[Piece] {
        &self.0.pieces
    }

    /// The buffer that it lies in, and where, in bytes; none where it is in pieces.
    pub(super) fn place(&self) -> Option<(u64, u64)> {
        match self.pieces() {
            [Piece { buffer, .. }] => Some((buffer.backing().id, buffer.start())),
            _ => None,
        }
    }

    /// Keeps its memory for what is queued, whose operands are another's.
    pub(crate) fn hold(&self, stream: &mut WgpuStream) {
        self.pieces().iter().for_each(|piece| stream.hold(&piece.buffer));
    }
}

/// The sizes of a layer's panels, and how many there are.
fn sizes(spec: &LinearSpec) -> Result<(Layout, usize)> {
    let sizes = Layout::of(spec).zip(panels(spec));
    let counted = sizes.filter(|(layout, panels)| {
        panels.checked_mul(layout.bytes()).is_some_and(|bytes| i64::try_from(bytes).is_ok())
    });
    let (got, limit) = (u64::MAX, i64::MAX as u64);
    counted.ok_or(Error::Limit { operator: "linear", argument: "packed bytes", got, limit })
}

impl Wgpu {
    /// Allocates all pieces, of at most `limit` bytes.
    fn pieces(&self, spec: &LinearSpec, layout: &Layout, panels: usize, limit: u64) -> Result<Vec<Piece>> {
        let together = panels_a_result(spec);
        let whole = (limit / layout.bytes() as u64) as usize / together * together;
        if whole == 0 {
            let got = (layout.bytes() * together) as u64;
            return Err(Error::Limit { operator: "linear", argument: "bytes of 16 channels", got, limit });
        }
        let pieces = (0..panels).step_by(whole).map(|first| {
            let panels = first..panels.min(first + whole);
            let buffer = self.alloc((panels.len() * layout.bytes()) as u64)?;
            Ok(Piece { buffer, panels })
        });
        pieces.collect()
    }

    /// The most bytes of a piece.
    fn largest_piece(&self) -> u64 {
        self.largest_binding().min(self.raw().limits().max_buffer_size)
    }

    pub(super) fn pack(
        &self,
        stream: &mut WgpuStream,
        weights: &Checked<HostWeights<'_>, &LinearSpec>,
    ) -> Result<WgpuPacked> {
        self.pack_pieces(stream, weights, self.largest_piece())
    }

    /// Packs to pieces of at most `limit` bytes.
    pub(super) fn pack_pieces(
        &self,
        stream: &mut WgpuStream,
        weights: &Checked<HostWeights<'_>, &LinearSpec>,
        limit: u64,
    ) -> Result<WgpuPacked> {
        let spec = (*weights.context()).clone();
        self.linear_supports(&spec).require("linear", self, &spec)?;
        let (layout, panels) = sizes(&spec)?;
        let pieces = self.pieces(&spec, &layout, panels, limit)?;
        let mut packer = Packer::new(&spec, layout, weights);
        let at_once = (CHUNK / layout.bytes()).max(1);
        let mut bytes = Vec::new();
        for piece in &pieces {
            for first in piece.panels.clone().step_by(at_once) {
                let chunk = first..piece.panels.end.min(first + at_once);
                bytes.clear();
                bytes.resize(chunk.len() * layout.bytes(), 0);
                for (panel, bytes) in chunk.zip(bytes.chunks_exact_mut(layout.bytes())) {
                    packer.fill(panel, bytes)?;
                }
                stream.stage(
                    &piece.buffer,
                    ((first - piece.panels.start) * layout.bytes()) as u64,
                    &bytes,
                )?;
            }
        }
        Ok(WgpuPacked(Arc::new(Inner { spec, layout, pieces })))
    }

    pub(super) fn restore(
        &self,
        stream: &mut WgpuStream,
        spec: &LinearSpec,
        saved: &[u8],
    ) -> Result<WgpuPacked> {
        spec.check()?;
        self.linear_supports(spec).require("linear", self, spec)?;
        let (layout, panels) = sizes(spec)?;
        let size = panels * layout.bytes();
        let panels_saved = saved_weights("linear", &header(spec), size as u64, saved)?;
        let pieces = self.pieces(spec, &layout, panels, self.largest_piece())?;
        for piece in &pieces {
            let Range { start, end } = piece.panels;
            let panels = &panels_saved[start * layout.bytes()..end * layout.bytes()];
            stream.stage(&piece.buffer, 0, panels)?;
        }
        Ok(WgpuPacked(Arc::new(Inner { spec: spec.clone(), layout, pieces })))
    }
}

/// What saved weights begin with: the layout's name and version, and the spec they were packed for.
fn header(spec: &LinearSpec) -> String {
    format!("halite-wgpu linear panels-of-{PANEL} v1 {spec:?}\n")
}

/// The packed bytes: the header and all panels, wherever they were cut.
pub(super) fn save(stream: &mut WgpuStream, packed: &WgpuPacked) -> Result<Vec<u8>> {
    let mut bytes = header(packed.as_ref()).into_bytes();
    for piece in packed.pieces() {
        let len = piece.buffer.len();
        for start in (0..len).step_by(CHUNK) {
            bytes.extend(stream.read(&piece.buffer, start, (len - start).min(CHUNK as u64))?.wait()?);
        }
    }
    Ok(bytes)
}
