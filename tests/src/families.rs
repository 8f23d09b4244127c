//! The one list of families and their groups. Whatever goes through all of them is made of it: [`groups`](crate::groups),
//! the tests of [`parity_tests!`](crate::parity_tests), and the deliberate faults.

/// Hands `with` and the list to the macro `then`; after the word `invariance`, the list of what only those are held to who
/// claim it. A family is a module of this crate, a group one that its `groups` makes.
#[doc(hidden)]
#[macro_export]
macro_rules! families {
    (invariance [$($then:tt)*] $($with:tt)*) => {
        $($then)*! {
            $($with)*
            invariance: linear rows attention mla moe quantize letter;
        }
    };
    ([$($then:tt)*] $($with:tt)*) => {
        $($then)*! {
            $($with)*
            device: tensors errors busy;
            activation: edges glu quantised supports random errors;
            attention: heads blocks lengths mixed extremes exact_grid bidirectional windows chunked trees
                soft_caps alibi sinks merge cascade states states_random int8 int8_compute latent known supports
                random errors;
            cache: edges supports random blocks int8 latent swap errors;
            collectives: reduce exchange supports random sequences mismatch errors;
            embedding: edges supports random pooling pooling_random l2_normalize l2_normalize_random
                errors;
            grouped: edges offsets random errors;
            linear: edges exact_grid int8_exact epilogues formats outputs group_wise group_wise_exact
                group_wise_random known lora lora_random supports random packed errors;
            logits: penalties masks random draws errors;
            mla: absorbed expanded products packed supports random errors;
            moe: routing routing_groups routing_extremes routing_random dispatch dispatch_random combine
                combine_random experts formats functions local_ranges sums supports random errors;
            norm: edges fused quantised weights extremes supports random errors;
            quantize: edges formats prepared known products rotate supports random errors;
            rope: edges scalings axes cos_sin inverse supports random views write write_random errors;
            sampling: greedy drawn random frequencies probabilities log_probs verify verify_random errors;
            top_k: edges supports random errors;
        }
    };
}
