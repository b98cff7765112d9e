//! Evaluation of kernels as a service: `kforge serve`. [`api`] holds the types of kforge's own interface, [`service`] the queue, the journal and the evaluations,
//! and [`http`] the server. [`service`] knows no HTTP, so that another interface is another file in [`http`] that calls it.

pub mod api;
pub mod http;
pub mod service;
