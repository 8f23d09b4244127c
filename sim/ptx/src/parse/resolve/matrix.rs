//! Instructions of matrices.

use super::super::error::Result;
use super::form::Form;
use crate::ir::{MatrixMultiply, Op, Space, Type};

pub(super) fn read(mut form: Form<'_, '_, '_>) -> Result<()> {
    match form.written.mnemonic.text {
        "ldmatrix" => {
            let (transposed, count) = moved(&mut form)?;
            let dst = form.dst_fragment(Type::B32, count)?;
            let (_, address) = form.address(Space::Shared)?;
            form.done(Op::LoadMatrix { transposed, dst, address })
        }
        "stmatrix" => {
            let (transposed, count) = moved(&mut form)?;
            let (_, address) = form.address(Space::Shared)?;
            let src = form.src_vector(Type::B32, count)?;
            form.done(Op::StoreMatrix { transposed, src, address })
        }
        "movmatrix" => {
            for name in ["sync", "aligned", "m8n8", "trans", "b16"] {
                form.must(name)?;
            }
            let (dst, a) = (form.dst(Type::B32)?, form.src(Type::B32)?);
            form.done(Op::TransposeMatrix { dst, a })
        }
        _ => multiply(form),
    }
}

/// `.sync.aligned.m8n8.x4.trans.shared.b16`: whether it transposes, and how many matrices it moves.
fn moved(form: &mut Form<'_, '_, '_>) -> Result<(bool, usize)> {
    for name in ["sync", "aligned", "m8n8"] {
        form.must(name)?;
    }
    let count = form.require(&[("x1", 1), ("x2", 2), ("x4", 4)])?;
    let transposed = form.flag("trans");
    // Without a space the address would be a generic one.
    form.require(&[("shared", ()), ("shared::cta", ())])?;
    form.must("b16")?;
    Ok((transposed, count))
}

/// The shapes of a type of A and B.
fn shapes(ty: Type) -> &'static [(&'static str, [u32; 3])] {
    match ty {
        Type::S8 | Type::U8 => {
            &[("m8n8k16", [8, 8, 16]), ("m16n8k16", [16, 8, 16]), ("m16n8k32", [16, 8, 32])]
        }
        Type::F16 | Type::BF16 => &[("m16n8k8", [16, 8, 8]), ("m16n8k16", [16, 8, 16])],
        Type::TF32 => &[("m16n8k4", [16, 8, 4]), ("m16n8k8", [16, 8, 8])],
        Type::E4M3 | Type::E5M2 => &[("m16n8k16", [16, 8, 16]), ("m16n8k32", [16, 8, 32])],
        _ => &[
            ("m8n8k4", [8, 8, 4]),
            ("m16n8k4", [16, 8, 4]),
            ("m16n8k8", [16, 8, 8]),
            ("m16n8k16", [16, 8, 16]),
        ],
    }
}

fn multiply(mut form: Form<'_, '_, '_>) -> Result<()> {
    form.must("sync")?;
    form.must("aligned")?;
    let named = form.modifier_if(|name| name.starts_with('m') && name.contains('k'));
    let Some(named) = named else { return Err(form.unexpected_modifier("a shape, as `.m16n8k16`")) };
    form.must("row")?;
    form.must("col")?;
    let saturate = form.flag("satfinite");
    let sums = &[Type::F16, Type::F32, Type::S32, Type::F64];
    let d_type = form.ty(sums)?;
    let factors = &[Type::S8, Type::U8, Type::F16, Type::BF16, Type::TF32, Type::E4M3, Type::E5M2, Type::F64];
    let (a_type, b_type) = (form.ty(factors)?, form.ty(factors)?);
    let c_type = form.ty(sums)?;
    let integer = matches!(a_type, Type::S8 | Type::U8);
    let eight = |ty| matches!(ty, Type::E4M3 | Type::E5M2);
    let alike = a_type == b_type
        || (integer && matches!(b_type, Type::S8 | Type::U8))
        || (eight(a_type) && eight(b_type));
    let sum_fits = match a_type {
        Type::S8 | Type::U8 => d_type == Type::S32 && c_type == Type::S32,
        Type::F16 => matches!(d_type, Type::F16 | Type::F32) && c_type == d_type,
        Type::F64 => d_type == Type::F64 && c_type == Type::F64,
        _ => d_type == Type::F32 && c_type == Type::F32,
    };
    if !alike || !sum_fits || (saturate && !integer) {
        return Err(form.conflict("types that are multiplied together and summed in this way"));
    }
    let Some(&(_, [m, n, k])) = shapes(a_type).iter().find(|(name, _)| *name == named) else {
        let names: Vec<&str> = shapes(a_type).iter().map(|(name, _)| *name).collect();
        return Err(form.conflict(format!("for `.{named}` another type; this one has {}", names.join(", "))));
    };
    // A warp's registers hold all elements once; narrow ones are packed into 32 bits.
    let registers = |elements: u32, ty: Type| {
        let per_register = (32 / ty.bits()).max(1);
        ((elements / 32 / per_register).max(1) as usize, if ty == Type::F64 { ty } else { Type::B32 })
    };
    let ((d_count, d_bits), (a_count, a_bits)) = (registers(m * n, d_type), registers(m * k, a_type));
    let ((b_count, b_bits), (c_count, c_bits)) = (registers(n * k, b_type), registers(m * n, c_type));
    let d = form.dst_fragment(d_bits, d_count)?;
    let a = form.src_vector(a_bits, a_count)?;
    let b = form.src_vector(b_bits, b_count)?;
    let c = form.src_vector(c_bits, c_count)?;
    form.done(Op::MatrixMultiply(Box::new(MatrixMultiply {
        m,
        n,
        k,
        d_type,
        a_type,
        b_type,
        c_type,
        saturate,
        d,
        a,
        b,
        c,
    })))
}
