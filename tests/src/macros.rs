//! The macro that makes a backend's tests.

/// One `#[test]` a group of cases, in a module of the given name.
///
/// A backend made elsewhere needs one file, `tests/parity.rs` of its own crate, with one line in it, and
/// `halite-parity` among its dev-dependencies.
///
/// The device expression gives `halite_hal::Result<B>`. With a word before it, it gives `Result<Option<B>>`, where `None` says
/// that this machine cannot have the device:
/// - `if_present`: something could be installed. Tests say that nothing ran, and fail where `CI=true`.
/// - `if_processor_can`: the processor lacks instructions, and no set-up adds them. Tests say that nothing ran and pass, so
///   a run has to say once, outside the tests, what it judged.
///
/// A backend that is being written names, before that word, the families and groups that it has not begun:
/// `without ["linear", "moe/experts"]`. Their tests say that nothing was judged, and pass; whoever names one shows elsewhere
/// that the backend refuses it.
///
/// With `invariant` before the name the backend claims batch invariance and is held to it.
///
/// ```
/// use halite_cpu::{Cpu, Options, Tier};
///
/// fn avx512_cpu() -> halite_hal::Result<Option<Cpu>> {
///     Tier::avx512().map(|tier| Cpu::new(Options::default().tier(tier))).transpose()
/// }
///
/// halite_parity::parity_tests!(invariant portable, Cpu::new(Options::default().tier(Tier::PORTABLE)));
/// halite_parity::parity_tests!(invariant avx512, if_processor_can avx512_cpu());
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! parity_tests {
    (invariant $name:ident, $($device:tt)+) => {
        mod $name {
            use super::*;
            $crate::parity_tests!(@on [] $($device)+);
            $crate::parity_tests!(@on [invariance] $($device)+);
        }
    };
    (@on [$($part:ident)?] without [$($name:literal),*] if_present $device:expr) => {
        $crate::families!(
            $($part)? [$crate::parity_tests] @families (run_test_of_begun (&[$($name),*][..], $device))
        );
    };
    (@on [$($part:ident)?] if_present $device:expr) => {
        $crate::families!($($part)? [$crate::parity_tests] @families (run_test $device));
    };
    (@on [$($part:ident)?] if_processor_can $device:expr) => {
        $crate::families!($($part)? [$crate::parity_tests] @families (run_test_if_able $device));
    };
    (@on [$($part:ident)?] $device:expr) => {
        $crate::parity_tests!(@on [$($part)?] if_present ($device).map(Some));
    };
    (@families $run:tt $($family:ident: $($group:ident)*;)*) => {
        $($crate::parity_tests!(@family $run, $family: $($group)*);)*
    };
    (@family ($run:ident $device:expr), $family:ident: $($group:ident)*) => {
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
                    $crate::$run($device, test)
                }
            )*
        }
    };
    ($name:ident, $($device:tt)+) => {
        mod $name {
            use super::*;
            $crate::parity_tests!(@on [] $($device)+);
        }
    };
}
