//! Whether operators can tell right from wrong, without a kernel being compiled: the oracle and calibrate steps of real packages as the plan makes them, and what
//! `tolerance = "auto"` derives for every built-in.

mod derived;
mod examples;
