//! What stands for operators that this backend does not have yet: it says so, and no value of it can exist.

use crate::device::NAME;
use halite_hal::Error;
use halite_kernels::{
    attention::{AttentionCapacity, AttentionPlan, AttentionSpec},
    mla::{MlaPlan, MlaSpec},
};

pub(crate) const REASON: &str = "not built on wgpu yet";

/// A plan, a cache or weights of an operator that there is not.
#[derive(Clone, Debug)]
pub enum Unbuilt {}

pub(crate) fn unbuilt(operator: &'static str) -> Error {
    Error::Unsupported {
        operator,
        backend: NAME.to_owned(),
        reason: REASON.to_owned(),
        spec: "anything".to_owned(),
    }
}

macro_rules! stands_for {
    ($($contract:ident { $($method:ident: $type:ty),* })*) => {$(
        impl $contract for Unbuilt {
            $(fn $method(&self) -> $type {
                match *self {}
            })*
        }
    )*};
}

stands_for! {
    AttentionPlan { spec: &AttentionSpec, capacity: &AttentionCapacity, tokens: usize }
    MlaPlan { mla: &MlaSpec }
}

impl AsRef<MlaSpec> for Unbuilt {
    fn as_ref(&self) -> &MlaSpec {
        match *self {}
    }
}
