//! Executes PTX on the CPU, so that CUDA kernels are tested without a GPU.

pub mod ir;
