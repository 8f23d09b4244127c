//! The wgpu backend, judged on the adapter that it chooses.

use halite_parity::parity_tests;
use halite_wgpu::{Options, Wgpu};

parity_tests!(wgpu, Wgpu::new(Options::default()));
