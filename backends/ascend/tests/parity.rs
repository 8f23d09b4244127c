//! The Ascend backend, judged on the stand-in for CANN. Nothing of it has been judged on an NPU.

mod standin;

use halite_parity::parity_tests;
use standin::device;

parity_tests!(ascend, device());
