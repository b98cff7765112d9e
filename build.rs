//! Links the program of a debug build at a fixed place. Knows cargo's variables.

#![expect(
    clippy::disallowed_methods,
    reason = "a build script speaks to cargo through its output and hears it through variables"
)]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A test starts many processes of an unoptimised kforge. Where it lies at a fixed place, the loader has a quarter of a million pointers less to set, each start.
    let is_gnu = variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    if variable("PROFILE") == "debug" && is_gnu {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo does not set `{name}`"))
}
