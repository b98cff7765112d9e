//! The arithmetic of evidence: comparison and error fronts, judgement, sufficient tolerances, calibration, signatures, derived metrics, floors, implausible
//! times, ceilings of memory, rates of units, rooflines, scores, rewards, statistics of pairs, intervals of medians, selection, splits of classes, attribution,
//! search over tunables. Pure functions of observations and policy. Knows no files, clock or processes.

pub mod apart;
pub mod attribute;
pub mod calibrate;
pub mod ceiling;
pub mod compare;
pub mod confirm;
pub mod deciding;
pub mod diagnose;
pub mod diagnosed;
pub mod derived;
pub mod floor;
pub mod front;
pub mod implausible;
pub mod interval;
pub mod judge;
pub mod orders;
pub mod own_share;
pub mod paired;
pub mod pattern;
pub mod reward;
pub mod roofline;
pub mod sampling;
pub mod score;
pub mod search;
pub mod select;
pub mod signature;
mod split;
pub mod stats;
#[doc(hidden)]
pub mod testing;
pub mod tolerate;
pub mod units;
