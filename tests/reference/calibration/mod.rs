//! Tests that operators are not indecisive, without compiling a kernel: the oracle and calibrate steps of real packages as planned, and the tolerances that
//! `tolerance = "auto"` derives for every built-in.

mod derived;
mod examples;
