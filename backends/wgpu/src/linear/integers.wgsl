// Activations of 8 bits: a quad is 16 values of K, four in a word. Sums of products are exact in I32.

alias Quad = vec4<u32>;
alias Sum = i32;
alias Sums = vec4<i32>;

struct Pair {
    first: Quad,
    second: Quad,
}

// Quad `q` of the row that begins at `start`. What lies behind a row is 0; U8 is 128 less.
fn x_quad(start: u32, q: u32) -> Quad {
    let k = 16u * q;
    var quad = x_bytes(start + k);
    quad ^= Quad((im.of_u8 & 1u) * 0x80808080u);
    if k + 16u > im.k {
        let left = i32(im.k) - i32(k);
        quad &= Quad(first_bytes(left), first_bytes(left - 4i), first_bytes(left - 8i), first_bytes(left - 12i));
    }
    if KEPT {
        // A bit for each value, in each panel alike.
        let kept_at = panel_start(0u) + outliers_at() + PANEL * ((im.outliers + 3u) / 4u);
        let bits = extractBits(w(kept_at + q / 8u)[q / 2u % 4u], 16u * (q % 2u), 16u);
        quad &= Quad(kept_bytes(bits), kept_bytes(bits >> 4u), kept_bytes(bits >> 8u), kept_bytes(bits >> 12u));
    }
    return quad;
}

fn first_bytes(count: i32) -> u32 {
    if count >= 4i {
        return 0xffffffffu;
    }
    return (1u << (8u * u32(max(count, 0i)))) - 1u;
}

// Four bits as four bytes.
fn kept_bytes(bits: u32) -> u32 {
    return (((bits & 15u) * 0x204081u) & 0x01010101u) * 255u;
}

fn add(sum: Sum, a: Quad, b: Quad) -> Sum {
    return sum + dot4I8Packed(a.x, b.x) + dot4I8Packed(a.y, b.y) + dot4I8Packed(a.z, b.z) + dot4I8Packed(a.w, b.w);
}

fn quad_sum(a: Quad) -> i32 {
    return add(0i, a, Quad(0x01010101u));
}

fn row_scale(row: u32) -> f32 {
    return x_scales(row * im.scales_stride);
}
