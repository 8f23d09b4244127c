// What a panel holds beside its weights; `layout.rs` has the places. `start` is the unit that a panel begins with.

const PANEL: u32 = 16u;

fn panel_start(panel: u32) -> u32 {
    // The weights of groups, of which a product has several only by ranges, lie so many units apart.
    return select(0u, member * im.apart, HAS_RANGE) + panel * im.panel_units;
}

// Word `channel` of the 16 at `at`.
fn channel_word(at: u32, channel: u32) -> u32 {
    return w(at + channel / 4u)[channel % 4u];
}

fn scale_of(start: u32, group: u32, channel: u32) -> f32 {
    return bitcast<f32>(channel_word(start + im.scales_at + 4u * group, channel));
}

// The bits of a zero point or a minimum.
fn offset_of(start: u32, group: u32, channel: u32) -> u32 {
    return channel_word(start + im.scales_at + 4u * (im.groups + group), channel);
}

// Where outlier columns begin: behind scales, offsets, and the sums that zero points of activations are multiplied with.
fn outliers_at() -> u32 {
    return im.scales_at + 4u * (select(im.groups, 2u * im.groups, OFFSET != 0u) + u32(HAS_X_ZEROS));
}

// The group of quad `q`; what K was filled up with counts to the last.
fn weight_group(q: u32) -> u32 {
    return min(q / im.weight_group, im.groups - 1u);
}
