//! What only a device can show, shown by the test-only one: selection with real decisions, pairs, attribution, evidence, expansion. Run with
//! `--features virtual-device`. Without it, what a released program must not have is looked for instead. No test uses a network, a GPU or a toolchain.

#[cfg(not(feature = "virtual-device"))]
mod absent;

#[cfg(feature = "virtual-device")]
mod ablated;
#[cfg(feature = "virtual-device")]
mod bounded;
#[cfg(feature = "virtual-device")]
mod compared;
#[cfg(feature = "virtual-device")]
mod evidence;
#[cfg(feature = "virtual-device")]
mod growth;
#[cfg(feature = "virtual-device")]
mod lab;
#[cfg(feature = "virtual-device")]
mod many;
#[cfg(feature = "virtual-device")]
mod products;
#[cfg(feature = "virtual-device")]
#[path = "../e2e/project.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod project;
#[cfg(feature = "virtual-device")]
mod property;
#[cfg(feature = "virtual-device")]
#[path = "../e2e/random.rs"]
mod random;
#[cfg(feature = "virtual-device")]
#[path = "../installed/remembered.rs"]
mod remembered;
#[cfg(feature = "virtual-device")]
mod rounds;
#[cfg(feature = "virtual-device")]
mod scored;
#[cfg(feature = "virtual-device")]
mod searched;
#[cfg(feature = "virtual-device")]
mod selected;
#[cfg(feature = "virtual-device")]
mod travel;
