//! Which extensions a processor has, and which of them each tier needs.

/// A set of extensions of x86-64; empty on every other architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Features(u16);

impl Features {
    pub(super) const NONE: Self = Self(0);
    pub(super) const AVX2: Self = Self(1 << 0);
    pub(super) const FMA: Self = Self(1 << 1);
    pub(super) const F16C: Self = Self(1 << 2);
    pub(super) const AVX_VNNI: Self = Self(1 << 3);
    pub(super) const AVX512F: Self = Self(1 << 4);
    pub(super) const AVX512BW: Self = Self(1 << 5);
    pub(super) const AVX512VL: Self = Self(1 << 6);
    pub(super) const AVX512DQ: Self = Self(1 << 7);
    pub(super) const AVX512_VNNI: Self = Self(1 << 8);

    /// What the AVX2 tier is compiled with: 2013 and later.
    pub(super) const AVX2_TIER: Self = Self::AVX2.and(Self::FMA).and(Self::F16C);
    /// What the AVX-VNNI tier is compiled with.
    pub(super) const AVX_VNNI_TIER: Self = Self::AVX2_TIER.and(Self::AVX_VNNI);
    /// What the AVX-512 tier is compiled with. Without VNNI the AVX2 tier serves: a byte product would take three
    /// instructions, as there.
    pub(super) const AVX512_TIER: Self = Self::AVX2_TIER
        .and(Self::AVX512F)
        .and(Self::AVX512BW)
        .and(Self::AVX512VL)
        .and(Self::AVX512DQ)
        .and(Self::AVX512_VNNI);

    /// Both.
    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `needed` are there.
    pub(super) const fn contain(self, needed: Self) -> bool {
        self.0 & needed.0 == needed.0
    }

    /// Those of this machine, as far as its operating system saves their registers.
    pub(super) fn detected() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let found = [
                (Self::AVX2, is_x86_feature_detected!("avx2")),
                (Self::FMA, is_x86_feature_detected!("fma")),
                (Self::F16C, is_x86_feature_detected!("f16c")),
                (Self::AVX_VNNI, is_x86_feature_detected!("avxvnni")),
                (Self::AVX512F, is_x86_feature_detected!("avx512f")),
                (Self::AVX512BW, is_x86_feature_detected!("avx512bw")),
                (Self::AVX512VL, is_x86_feature_detected!("avx512vl")),
                (Self::AVX512DQ, is_x86_feature_detected!("avx512dq")),
                (Self::AVX512_VNNI, is_x86_feature_detected!("avx512vnni")),
            ];
            found.into_iter().filter(|&(_, found)| found).fold(Self::NONE, |all, (one, _)| all.and(one))
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            Self::NONE
        }
    }

    /// The names of the tiers that run with these, slowest first. AMX is not among them: it is asked for, not found.
    pub(super) fn tiers(self) -> impl Iterator<Item = &'static str> {
        let tiers = [
            ("portable", Self::NONE),
            ("avx2", Self::AVX2_TIER),
            ("avx-vnni", Self::AVX_VNNI_TIER),
            ("avx512", Self::AVX512_TIER),
        ];
        tiers.into_iter().filter(move |&(_, needed)| self.contain(needed)).map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Tier;

    const ALL: Features = Features(0x1FF);

    fn names(features: Features) -> Vec<&'static str> {
        features.tiers().collect()
    }

    #[test]
    fn each_processor_has_its_tiers() {
        let haswell = Features::AVX2.and(Features::FMA).and(Features::F16C);
        let skylake_x = haswell
            .and(Features::AVX512F)
            .and(Features::AVX512BW)
            .and(Features::AVX512VL)
            .and(Features::AVX512DQ);
        for (machine, features, expected) in [
            ("nothing", Features::NONE, &["portable"][..]),
            ("AVX2 alone", Features::AVX2, &["portable"]),
            ("AVX2 without F16C", Features::AVX2.and(Features::FMA), &["portable"]),
            ("AVX2 without FMA", Features::AVX2.and(Features::F16C), &["portable"]),
            ("VNNI without AVX2", Features::AVX_VNNI.and(Features::AVX512_VNNI), &["portable"]),
            ("Haswell, Zen 1 to 3", haswell, &["portable", "avx2"]),
            ("Alder Lake", haswell.and(Features::AVX_VNNI), &["portable", "avx2", "avx-vnni"]),
            ("Skylake-X: no VNNI", skylake_x, &["portable", "avx2"]),
            ("Ice Lake, Zen 4", skylake_x.and(Features::AVX512_VNNI), &["portable", "avx2", "avx512"]),
            ("Sapphire Rapids, Zen 5", ALL, &["portable", "avx2", "avx-vnni", "avx512"]),
        ] {
            assert_eq!(names(features), expected, "{machine}");
        }
    }

    #[test]
    fn a_tier_wants_everything_that_it_is_compiled_with() {
        for (name, needed) in [
            ("avx2", Features::AVX2_TIER),
            ("avx-vnni", Features::AVX_VNNI_TIER),
            ("avx512", Features::AVX512_TIER),
        ] {
            assert!(names(needed).contains(&name), "{name} by {needed:?}");
            for bit in 0..9 {
                let one = Features(1 << bit);
                let without = Features(ALL.0 & !one.0);
                assert_eq!(names(without).contains(&name), !needed.contain(one), "{name} without {one:?}");
            }
        }
    }

    #[test]
    fn this_machine_has_the_tiers_of_its_features() {
        let mut expected = names(Features::detected());
        expected.extend(Tier::amx().map(Tier::name));
        assert_eq!(Tier::available().map(Tier::name).collect::<Vec<_>>(), expected);
        assert_eq!(Some(&Tier::best().name()), expected.last());
        for name in Tier::NAMES {
            assert_eq!(Tier::named(name).map(Tier::name), expected.contains(&name).then_some(name));
        }
        assert_eq!(Tier::named("sse2"), None);
    }
}
