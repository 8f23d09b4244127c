//! A function of 16 lanes as a kernel, for the tests of such functions.

macro_rules! function {
    ($kernel:ident, $function:path) => {
        struct $kernel([f32; LANES]);
        impl Kernel for $kernel {
            type Output = [f32; LANES];
            #[inline(always)]
            fn run<I: Isa>(self, isa: I) -> [f32; LANES] {
                let mut out = [0.0; LANES];
                isa.store($function(isa, isa.load(&self.0)), &mut out);
                out
            }
        }
    };
}
pub(crate) use function;
