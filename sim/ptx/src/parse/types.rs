//! Types and spaces by their names.

use crate::ir::{Space, Type};

/// The type that a modifier names.
pub(super) fn named(name: &str) -> Option<Type> {
    Some(match name {
        "pred" => Type::Predicate,
        "b8" => Type::B8,
        "b16" => Type::B16,
        "b32" => Type::B32,
        "b64" => Type::B64,
        "b128" => Type::B128,
        "u8" => Type::U8,
        "u16" => Type::U16,
        "u32" => Type::U32,
        "u64" => Type::U64,
        "s8" => Type::S8,
        "s16" => Type::S16,
        "s32" => Type::S32,
        "s64" => Type::S64,
        "u16x2" => Type::U16x2,
        "s16x2" => Type::S16x2,
        "f16" => Type::F16,
        "f16x2" => Type::F16x2,
        "bf16" => Type::BF16,
        "bf16x2" => Type::BF16x2,
        "tf32" => Type::TF32,
        "e4m3" => Type::E4M3,
        "e5m2" => Type::E5M2,
        "e4m3x2" => Type::E4M3x2,
        "e5m2x2" => Type::E5M2x2,
        "f32" => Type::F32,
        "f64" => Type::F64,
        _ => return None,
    })
}

/// The name of a type, without a dot.
pub(super) fn name(ty: Type) -> String {
    match ty {
        Type::Predicate => "pred".to_owned(),
        other => format!("{other:?}").to_lowercase(),
    }
}

/// The space of a declaration.
pub(super) fn declared_space(name: &str) -> Option<Space> {
    Some(match name {
        "global" => Space::Global,
        "shared" => Space::Shared,
        "local" => Space::Local,
        "param" => Space::Param,
        "const" => Space::Const,
        _ => return None,
    })
}
