//! The client for caches that speak the Remote Execution API (REAPI) of Bazel.
