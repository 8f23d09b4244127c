//! `cvt`.

use super::super::error::Result;
use super::form::Form;
use crate::ir::{FloatMode, Op, Rounding, Type};

const INTEGERS: &[Type] =
    &[Type::U8, Type::U16, Type::U32, Type::U64, Type::S8, Type::S16, Type::S32, Type::S64];
const FLOATS: &[Type] = &[Type::F16, Type::BF16, Type::F32, Type::F64];
const PACKED: &[Type] = &[Type::F16x2, Type::BF16x2, Type::E4M3x2, Type::E5M2x2];

pub(super) fn read(mut form: Form<'_, '_, '_>) -> Result<()> {
    if form.flag("pack") {
        return pack(form);
    }
    // Roundings to integral values have names of their own.
    let integral = form.choose(&[
        ("rni", Rounding::NearestEven),
        ("rzi", Rounding::Zero),
        ("rmi", Rounding::Down),
        ("rpi", Rounding::Up),
    ]);
    let mut mode = form.mode(&["rn", "rna", "rz", "rm", "rp"]);
    let finite = form.flag("satfinite");
    let rest = form.mode(&["relu"]);
    let finite = finite || form.flag("satfinite");
    let clamps = form.mode(&["ftz", "sat"]);
    mode =
        FloatMode { relu: rest.relu, flush_to_zero: clamps.flush_to_zero, saturate: clamps.saturate, ..mode };
    let to = form.ty(&[INTEGERS, FLOATS, PACKED, &[Type::TF32]].concat())?;
    let from = form.ty(&[INTEGERS, FLOATS, PACKED].concat())?;

    let integral_result = !to.is_float() || to == from;
    if integral.is_some() && !(from.is_float() && integral_result) {
        return Err(form.conflict("a floating-point type, with an integer or the same type as the result"));
    }
    if mode.rounding.is_some() && !to.is_float() {
        return Err(form.conflict("a rounding to an integral value, as `.rni`, for an integer result"));
    }
    if from.is_float() && !to.is_float() && integral.is_none() {
        return Err(form.conflict("a rounding to an integral value, as `.rni`, for an integer result"));
    }
    let narrowing = to.is_float()
        && if from.is_float() { to.bits() < from.bits() || PACKED.contains(&to) } else { from.bits() >= 8 };
    if narrowing && to != from && mode.rounding.is_none() {
        return Err(form.conflict("a rounding, as `.rn`, for a result that may be inexact"));
    }
    // A format of the same size with other numbers may round; a wider one never does.
    let may_round =
        narrowing || to == Type::TF32 || !from.is_float() || (to != from && to.bits() == from.bits());
    if mode.rounding.is_some() && !may_round {
        return Err(form.conflict("no rounding, or one to an integral value, where nothing is rounded"));
    }
    if mode.relu && !(to.is_float() && from.is_float()) {
        return Err(form.conflict("floating-point types with `.relu`"));
    }
    if finite {
        // For these types it is the only saturation there is.
        if !matches!(to, Type::E4M3x2 | Type::E5M2x2 | Type::TF32) {
            return Err(form.conflict("a result of e4m3x2, e5m2x2 or tf32 with `.satfinite`"));
        }
        mode.saturate = true;
    }
    mode.rounding = mode.rounding.or(integral);

    if PACKED.contains(&to) && from == Type::F32 {
        let dst = form.dst(to)?;
        // PTX names the upper element first.
        let (upper, lower) = (form.src(from)?, form.src(from)?);
        return form.done(Op::Convert { to, from, mode, dst_bits: to.bits(), dst, a: lower, b: Some(upper) });
    }
    let packs = |ty| matches!(ty, Type::E4M3x2 | Type::E5M2x2);
    let pairs = (packs(to) && from == Type::F16x2) || (packs(from) && to == Type::F16x2);
    if !pairs && (PACKED.contains(&to) || PACKED.contains(&from)) {
        return Err(form.conflict("types that are converted to each other"));
    }
    if to == Type::TF32 && from != Type::F32 {
        return Err(form.conflict(".f32"));
    }
    let (dst, dst_bits) = if to.is_float() { (form.dst(to)?, to.bits()) } else { form.dst_wide(to)? };
    let a = if from.is_float() { form.src(from)? } else { form.src_wide(from)? };
    form.done(Op::Convert { to, from, mode, dst_bits, dst, a, b: None })
}

/// `cvt.pack.sat.s8.s32.b32 d, a, b, c`.
fn pack(mut form: Form<'_, '_, '_>) -> Result<()> {
    form.must("sat")?;
    let to = form.ty(&[Type::U8, Type::S8, Type::U16, Type::S16])?;
    let from = form.ty(&[Type::S32])?;
    let follows = to.bits() == 8 && form.ty_if(&[Type::B32]).is_some();
    let (dst, a, b) = (form.dst(Type::B32)?, form.src(from)?, form.src(from)?);
    let c = if follows { Some(form.src(Type::B32)?) } else { None };
    form.done(Op::ConvertPack { to, dst, a, b, c })
}
