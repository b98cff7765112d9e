//! kforge: Cargo for GPU kernels.
//!
//! # The house
//!
//! The modules below stand in their order of import: a room uses only rooms above its own (`tests/layering.rs` holds this).
//! Data flows one way: manifest, [`model`], [`plan`], [`engine`], [`step`], [`worker`], observation, judgement, [`report`].

pub mod base;
pub mod process;
pub mod model;
pub mod record;
pub mod reference;
pub mod measure;
pub mod config;
pub mod workspace;
pub mod toolchain;
pub mod engine;
pub mod plan;
pub mod worker;
pub mod step;
pub mod report;
pub mod cli;
