//! Tests of reading manifests.
