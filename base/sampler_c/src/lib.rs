//! The sampler for services in C and in whatever calls C: the functions of `include/sampler.h`. It decides nothing.

mod functions;

pub use functions::{
    sampler_close, sampler_done, sampler_event, sampler_now, sampler_open, sampler_ring_free,
    sampler_ring_new, sampler_span,
};
