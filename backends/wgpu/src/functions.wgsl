// Activation functions. FUNCTION says which: the numbers are `activation::code`'s.

// x · sigmoid(at). At minus infinity the limit: a finite x that far down gives -0 instead of NaN.
fn gate(x: f32, at: f32) -> f32 {
    let finite = select(x, -0x1.fffffep+127f, at < 0.0f && x < -0x1.fffffep+127f);
    return finite / (1.0f + exponential(-at));
}

// x Φ(x), the erf form: below 1 by erf's series t E(t²), from 1 on by erfc(t) = s e^(-t²) C(s), s = 1 / (1 + t / 2), both
// polynomials fitted for this library (halite-cpu has the same ones, and their errors).
fn gelu_erf(x: f32) -> f32 {
    if is_nan(x) {
        return x;
    }
    let t = abs(x) * 0.70710678f;
    let square = t * t;
    var phi = 0.0f;
    if t < 1.0f {
        var e = fma(square, 7.847219e-5f, -8.0083456e-4f);
        e = fma(square, e, 5.188136e-3f);
        e = fma(square, e, -2.6853722e-2f);
        e = fma(square, e, 1.1283583e-1f);
        e = fma(square, e, -3.7612626e-1f);
        e = fma(square, e, 1.12837917f);
        phi = fma(t * e, -0.5f, 0.5f);
    } else {
        let s = 1.0f / fma(t, 0.5f, 1.0f);
        var c = fma(s, -3.8364723e-2f, 2.2028211e-1f);
        c = fma(s, c, -4.0473038e-1f);
        c = fma(s, c, 2.2190101e-1f);
        c = fma(s, c, -4.9983705e-3f);
        c = fma(s, c, 1.981209e-1f);
        c = fma(s, c, 2.4354358e-1f);
        c = fma(s, c, 2.823729e-1f);
        c = fma(s, c, 2.820847e-1f);
        phi = 0.5f * s * c * exponential(-square);
    }
    if x >= 0.0f {
        return x * (1.0f - phi);
    }
    return max(x, -0x1.fffffep+127f) * phi;
}

fn activate(function: u32, x: f32) -> f32 {
    switch function {
        case 0u: {
            return gate(x, x);
        }
        case 1u: {
            return gelu_erf(x);
        }
        case 2u: {
            // x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))) is x · sigmoid of twice tanh's argument, which does not cancel.
            return gate(x, x * fma(x * x, 7.1354814e-2f, 1.595769f));
        }
        case 3u: {
            return gate(x, 1.702f * x);
        }
        case 4u: {
            return select(max(x, 0.0f), x, is_nan(x));
        }
        case 5u: {
            let y = max(x, 0.0f);
            return select(y * y, x, is_nan(x));
        }
        default: {
            return x;
        }
    }
}

// Clamped SwiGLU; NaN stays NaN through the clamps.
fn clamped_swiglu(g: f32, u: f32, alpha: f32, limit: f32) -> f32 {
    let low = select(min(g, limit), g, is_nan(g));
    let up = select(clamp(u, -limit, limit), u, is_nan(u));
    return gate(low, alpha * low) * (up + 1.0f);
}
