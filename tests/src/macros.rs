//! The macro that makes a backend's tests.

/// One `#[test]` a group of cases, in a module of the given name.
///
/// A backend made elsewhere needs one file, `tests/parity.rs` of its own crate, with one line in it, and
/// `halite-parity` among its dev-dependencies.
///
/// The device expression gives `halite_hal::Result<B>`; with `if_present` before it, `Result<Option<B>>`, where `None`
/// says that this machine cannot have the device: tests then say so, and fail where `CI=true`. With `invariant` before
/// the name the backend claims batch invariance and is held to it.
///
/// ```
/// use halite_cpu::{Cpu, Options, Tier};
///
/// fn avx512_cpu() -> halite_hal::Result<Option<Cpu>> {
///     Tier::avx512().map(|tier| Cpu::new(Options::default().tier(tier))).transpose()
/// }
///
/// halite_parity::parity_tests!(invariant portable, Cpu::new(Options::default().tier(Tier::PORTABLE)));
/// halite_parity::parity_tests!(invariant avx512, if_present avx512_cpu());
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! parity_tests {
    (invariant $name:ident, if_present $device:expr) => {
        mod $name {
            use super::*;
            $crate::parity_tests!(@families $device);
            $crate::parity_tests!(@invariance $device);
        }
    };
    (invariant $name:ident, $device:expr) => {
        $crate::parity_tests!(invariant $name, if_present ($device).map(Some));
    };
    ($name:ident, if_present $device:expr) => {
        mod $name {
            use super::*;
            $crate::parity_tests!(@families $device);
        }
    };
    ($name:ident, $device:expr) => {
        $crate::parity_tests!($name, if_present ($device).map(Some));
    };
    (@families $device:expr) => {
        $crate::parity_tests!(@family $device, device: tensors errors busy);
        $crate::parity_tests!(@family $device, activation: edges glu quantised supports random errors);
        $crate::parity_tests!(
            @family $device,
            attention: heads blocks lengths mixed extremes exact_grid bidirectional windows chunked trees soft_caps alibi sinks
                merge cascade int8 int8_compute latent known supports random errors
        );
        $crate::parity_tests!(@family $device, cache: edges supports random blocks int8 latent swap errors);
        $crate::parity_tests!(
            @family $device, collectives: reduce exchange supports random sequences mismatch errors
        );
        $crate::parity_tests!(
            @family $device,
            embedding: edges supports random pooling pooling_random l2_normalize l2_normalize_random errors
        );
        $crate::parity_tests!(@family $device, grouped: edges offsets random errors);
        $crate::parity_tests!(
            @family $device,
            linear: edges exact_grid int8_exact epilogues formats group_wise group_wise_exact
                group_wise_random known lora lora_random supports random packed errors
        );
        $crate::parity_tests!(@family $device, logits: penalties masks random draws errors);
        $crate::parity_tests!(
            @family $device, mla: absorbed expanded products packed supports random errors
        );
        $crate::parity_tests!(
            @family $device, moe: routing routing_groups routing_extremes routing_random dispatch dispatch_random
                combine combine_random experts functions local_ranges sums supports random errors
        );
        $crate::parity_tests!(@family $device, norm: edges fused quantised weights extremes supports random errors);
        $crate::parity_tests!(@family $device, quantize: edges formats prepared known products supports random errors);
        $crate::parity_tests!(
            @family $device,
            rope: edges scalings axes cos_sin inverse supports random views write write_random errors
        );
        $crate::parity_tests!(
            @family $device,
            sampling: greedy drawn random frequencies probabilities log_probs verify verify_random errors
        );
        $crate::parity_tests!(@family $device, top_k: edges supports random errors);
    };
    (@invariance $device:expr) => {
        $crate::parity_tests!(@family $device, invariance: linear rows attention mla moe quantize letter);
    };
    (@family $device:expr, $family:ident: $($group:ident)*) => {
        pub(crate) mod $family {
            use super::*;
            /// The groups that tests were made for.
            #[allow(dead_code)]
            pub(crate) const GROUPS: &[&str] = &[$(stringify!($group)),*];
            $(
                #[test]
                fn $group() -> ::std::result::Result<(), $crate::Failure> {
                    let test = $crate::Test {
                        family: stringify!($family),
                        group: stringify!($group),
                        package: env!("CARGO_PKG_NAME"),
                        module: module_path!(),
                    };
                    $crate::run_test($device, test)
                }
            )*
        }
    };
}
