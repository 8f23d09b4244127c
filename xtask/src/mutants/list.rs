//! The mutations: one wrong line each, and the groups of the parity suite that must notice.

/// One wrong line in a kernel of the CPU backend.
pub(super) struct Mutation {
    /// Below `backends/cpu/src`.
    pub(super) file: &'static str,
    /// Stands once in the file.
    pub(super) from: &'static str,
    pub(super) to: &'static str,
    /// `family::group`, or a family.
    pub(super) noticed_by: &'static str,
}

const fn wrong(
    file: &'static str,
    from: &'static str,
    to: &'static str,
    noticed_by: &'static str,
) -> Mutation {
    Mutation { file, from, to, noticed_by }
}

pub(super) const MUTATIONS: &[Mutation] = &[
    // Linear layers: a dropped tail, swapped and missing scales, wrong compensation, saturating sums.
    wrong(
        "linear/int8.rs",
        "tail[..rest.len()].copy_from_slice(rest);",
        "_ = (&mut tail, rest);",
        "linear::edges",
    ),
    wrong("linear/int8.rs", "sum.wrapping_mul(-128)", "sum.wrapping_mul(-127)", "linear::edges"),
    wrong(
        "simd/portable.rs",
        "sum.wrapping_add(pairs[0].wrapping_add(pairs[1]))",
        "sum.wrapping_add(pairs[0].min(32_767).wrapping_add(pairs[1].min(32_767)))",
        "linear::int8_exact",
    ),
    wrong(
        "linear/scaled.rs",
        "self.a_scale.at(self.first + row, 0)",
        "self.a_scale.at(self.first, 0)",
        "linear::edges",
    ),
    wrong(
        "linear/scaled.rs",
        "isa.store(isa.mul(isa.load(sums), w_scale), sums);",
        "_ = (sums, w_scale);",
        "linear::formats",
    ),
    wrong(
        "linear/scaled.rs",
        "if self.group == 0 { scaled } else { isa.add(isa.load(to), scaled) }",
        "scaled",
        "linear::formats",
    ),
    wrong("linear/zero_points.rs", "subtract(sums, weights, row_sum);", "_ = row_sum;", "linear::formats"),
    wrong("linear/zero_points.rs", ".wrapping_sub(self.offset)", "", "linear::formats"),
    wrong(
        "linear/outliers.rs",
        "isa.store(isa.add(isa.load(sums), acc), sums);",
        "_ = (acc, sums);",
        "linear::formats",
    ),
    wrong("linear/group_wise.rs", "-weights.excess()", "-weights.excess() + 1", "linear::group_wise"),
    wrong(
        "linear/group_wise_tile.rs",
        "group += usize::from(step.is_multiple_of(per_group))",
        "group += usize::from(!step.is_multiple_of(per_group))",
        "linear::group_wise",
    ),
    wrong("attention/operands.rs", "slot..slot + LANES)", "slot + 1..slot + 1 + LANES)", "attention"),
    wrong("grouped.rs", "bias.narrow(0, group..group + 1)?", "bias.narrow(0, 0..1)?", "grouped"),
    // Attention: masks off by one, wrong heads, states merged wrong.
    wrong(
        "attention/visible.rs",
        "end.saturating_sub(window)..end",
        "end.saturating_sub(window + 1)..end",
        "attention::windows",
    ),
    wrong(
        "attention/visible.rs",
        "end.saturating_sub(1) / chunk * chunk..end",
        "end / chunk * chunk..end",
        "attention::chunked",
    ),
    wrong(
        "attention/visible.rs",
        "usize::try_from(self.position(token) + 1)",
        "usize::try_from(self.position(token))",
        "attention::lengths",
    ),
    wrong(
        "attention/visible.rs",
        "i64::from(parent).min(row - 1)",
        "i64::from(parent).max(row - 1)",
        "attention::trees",
    ),
    wrong(
        "attention/source.rs",
        "let at = self.table[n] as usize * heads + self.kv_head;",
        "let at = self.table[n] as usize * heads;",
        "attention::heads",
    ),
    wrong("attention/state.rs", "isa.select(live, top, m1)", "m1", "attention::lengths"),
    wrong("attention/state.rs", "l * factor + factors[1]", "l * factor", "attention::sinks"),
    wrong("attention/state.rs", "m + log[0]", "log[0]", "attention::lengths"),
    wrong(
        "attention/merge.rs",
        "total += exp(isa, log - most);",
        "total += exp(isa, log - log);",
        "attention::merge",
    ),
    wrong(
        "attention/task.rs",
        "slope: slopes[rows.query_head(first + row)],",
        "slope: slopes[rows.query_head(first)],",
        "attention::alibi",
    ),
    wrong(
        "attention/visible.rs",
        "..seen.end.clamp(read.start, read.end)",
        "..seen.end.max(read.start)",
        "attention::states",
    ),
    wrong(
        "attention/state.rs",
        "(self.m[row], self.l[row]) = (max, sum);",
        "_ = (max, sum);",
        "attention::states",
    ),
    wrong("mla/expand.rs", "part.put_key(at, nope, rope_key);", "_ = (nope, rope_key);", "mla::expanded"),
    // The cache: a slot off by one, another head's scale, the wrong cache.
    wrong("cache/write.rs", "slot: slot % block_size", "slot: (slot + 1) % block_size", "cache::edges"),
    wrong(
        "cache/write.rs",
        "self.scales[block * scales + cache.scale_place(head, slot)] = scale;",
        "self.scales[block * scales + cache.scale_place(0, slot)] = scale;",
        "cache::int8",
    ),
    wrong("cache/blocks.rs", "memory[start(to, block)..]", "memory[start(from, block)..]", "cache::swap"),
    // Quantisation.
    wrong(
        "quantize/row.rs",
        "(isa.max_lane(greatest) / 127.0)",
        "(isa.max_lane(greatest) / 126.0)",
        "quantize::edges",
    ),
    wrong("quantize/row.rs", "(above / 255.0 + below / 255.0)", "(above / 255.0)", "quantize::formats"),
    wrong("quantize/prepare.rs", "*y = 0.0;", "_ = y;", "quantize::prepared"),
    // Norms, rotations, activations.
    wrong("norm.rs", "variance + formula.eps * x.by * x.by", "variance + 0.0 * formula.eps", "norm::edges"),
    wrong("norm.rs", "first_lanes(x.len() - start)", "first_lanes(16 + x.len() - start)", "norm::edges"),
    wrong("norm.rs", "if self.rows.outer == 1 { 0 } else { head }", "{ _ = head; 0 }", "norm::weights"),
    wrong(
        "rope.rs",
        "positions.positions[axis * tokens + token]",
        "positions.positions[token + 0 * axis]",
        "rope::axes",
    ),
    wrong("rope.rs", "(s * factor) as f32", "s as f32", "rope::scalings"),
    wrong(
        "activation.rs",
        "(isa.splat(limit), isa.splat(-limit))",
        "(isa.splat(limit), isa.splat(limit - limit))",
        "activation::glu",
    ),
    wrong(
        "embedding/pooling.rs",
        "isa.splat(tokens.len() as f32)",
        "isa.splat((tokens.len() - 1) as f32)",
        "embedding::pooling",
    ),
    // Experts: choice, order, offsets.
    wrong(
        "moe/routing.rs",
        "self.sums[best] + self.sums[second]",
        "self.sums[best] + 0.0 * self.sums[second]",
        "moe::routing_groups",
    ),
    wrong("moe/routing.rs", "x > y || y.is_nan()", "x > y", "moe::routing_extremes"),
    wrong("moe/routing.rs", "*weight /= sum;", "_ = (&weight, sum);", "moe::routing"),
    wrong("moe/dispatch.rs", "    offsets[0] = 0;", "    offsets[0] = 1;", "moe::dispatch"),
    wrong(
        "moe/combine.rs",
        "layout.row(weights, token)[slot]",
        "layout.row(weights, token)[slot - slot]",
        "moe::combine",
    ),
    // Sampling and what stands around it.
    wrong(
        "top_k.rs",
        "(self.key(self.values[a]), -self.ids[a]) < (self.key(self.values[b]), -self.ids[b])",
        "(self.key(self.values[a]), self.ids[a]) < (self.key(self.values[b]), self.ids[b])",
        "top_k",
    ),
    wrong("logits.rs", "*x -= presence;", "_ = presence;", "logits::penalties"),
    wrong("logits.rs", ">> (vector % 2 * LANES)", ">> (vector % 1 * LANES)", "logits::masks"),
    wrong("sampling/mass.rs", "isa.splat(self.factor / before)", "isa.splat(1.0 / before)", "sampling"),
    wrong("sampling/mass.rs", "if self.factor < 2f32.powi(-64)", "if self.factor < 0.0", "sampling"),
    wrong("embedding/l2_normalize.rs", "> 2f32.powi(40)", "> 2f32.powi(60)", "embedding::l2_normalize"),
    wrong(
        "collectives/mod.rs",
        "check_together(brought.iter().flatten()",
        "check_together(brought.iter().take(1).flatten()",
        "collectives::mismatch",
    ),
    wrong("collectives/reduce.rs", "next > so_far || next.is_nan()", "next > so_far", "collectives::reduce"),
];
