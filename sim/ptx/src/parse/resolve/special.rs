//! Special registers by their names.

use crate::ir::{LaneMask, Source, Special};

/// The special register, and its bits.
pub(super) fn named(name: &str, part: Option<&str>) -> Option<(Source, u32)> {
    let axis = match part {
        None => None,
        Some("x") => Some(0),
        Some("y") => Some(1),
        Some("z") => Some(2),
        // The fourth part of positions is 0.
        Some("w") if matches!(name, "%tid" | "%ctaid" | "%cluster_ctaid") => {
            return Some((Source::Immediate(0), 32));
        }
        Some(_) => return None,
    };
    let special = match (name, axis) {
        ("%tid", Some(axis)) => Special::Thread(axis),
        ("%ntid", Some(axis)) => Special::BlockShape(axis),
        ("%ctaid", Some(axis)) => Special::Block(axis),
        ("%nctaid", Some(axis)) => Special::GridShape(axis),
        ("%cluster_ctaid", Some(axis)) => Special::BlockInCluster(axis),
        ("%cluster_nctaid", Some(axis)) => Special::ClusterShape(axis),
        (_, Some(_)) => return None,
        ("%laneid", None) => Special::Lane,
        ("%warpid", None) => Special::Warp,
        ("%nwarpid", None) => Special::Warps,
        ("%smid", None) => Special::Multiprocessor,
        ("%nsmid", None) => Special::Multiprocessors,
        ("%gridid", None) => return Some((Source::Special(Special::Grid), 64)),
        ("%lanemask_eq", None) => Special::LaneMask(LaneMask::Equal),
        ("%lanemask_lt", None) => Special::LaneMask(LaneMask::Less),
        ("%lanemask_le", None) => Special::LaneMask(LaneMask::LessOrEqual),
        ("%lanemask_gt", None) => Special::LaneMask(LaneMask::Greater),
        ("%lanemask_ge", None) => Special::LaneMask(LaneMask::GreaterOrEqual),
        ("%clock", None) => Special::Clock,
        ("%clock64", None) => return Some((Source::Special(Special::Clock64), 64)),
        ("%globaltimer", None) => return Some((Source::Special(Special::GlobalTimer), 64)),
        ("%dynamic_smem_size", None) => Special::DynamicSharedBytes,
        ("%total_smem_size", None) => Special::TotalSharedBytes,
        ("%cluster_ctarank", None) => Special::RankInCluster,
        ("%cluster_nctarank", None) => Special::BlocksInCluster,
        ("WARP_SZ", None) => Special::WarpSize,
        _ => return None,
    };
    Some((Source::Special(special), 32))
}
