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
            $crate::families!([$crate::parity_tests] @families ($device));
            $crate::families!(invariance [$crate::parity_tests] @families ($device));
        }
    };
    (invariant $name:ident, $device:expr) => {
        $crate::parity_tests!(invariant $name, if_present ($device).map(Some));
    };
    ($name:ident, if_present $device:expr) => {
        mod $name {
            use super::*;
            $crate::families!([$crate::parity_tests] @families ($device));
        }
    };
    ($name:ident, $device:expr) => {
        $crate::parity_tests!($name, if_present ($device).map(Some));
    };
    (@families ($device:expr) $($family:ident: $($group:ident)*;)*) => {
        $($crate::parity_tests!(@family $device, $family: $($group)*);)*
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
