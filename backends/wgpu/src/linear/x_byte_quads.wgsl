// Activations of 8 bits whose rows begin at multiples of 16 bytes.

// The 16 from `i` on.
fn x_bytes(i: u32) -> vec4<u32> {
    return x(i / 16u);
}
