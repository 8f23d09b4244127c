//! Where the rows of a tensor lie.

pub(crate) use halite_kernels::Rows;
