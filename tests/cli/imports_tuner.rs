//! `kforge import kernel-tuner`: hints in the manifest, and what is refused.

use crate::place::{MANIFEST, Place, SOURCE};

const CACHE: &str = "{\"device_name\": \"A100\", \"kernel_name\": \"twice\", \"problem_size\": [5], \"tune_params_keys\": [\"BLOCK\", \"unroll\"],\n\
    \"tune_params\": {\"BLOCK\": [32, 64, 96]}, \"objective\": \"time\", \"cache\": {\n\
    \"32,1\": {\"BLOCK\": 32, \"unroll\": 1, \"time\": 2.0},\n\"64,1\": {\"BLOCK\": 64, \"unroll\": 1, \"time\": 1.0},\n\
    \"96,1\": {\"BLOCK\": 96, \"unroll\": 1, \"time\": 0.5},\n\"64,2\": {\"BLOCK\": 64, \"unroll\": 2, \"time\": \"RuntimeFailedConfig\"}}}\n";

fn place() -> Place {
    let manifest = MANIFEST.replace("BLOCK = [32]", "BLOCK = [32, 64, 128]\nstrategy = \"random\"");
    Place::empty().file("kernel.toml", &manifest).file("twice.cu", SOURCE).file("cache.json", CACHE)
}

#[test]
fn the_fastest_configurations_become_hints_and_the_rest_is_said() {
    let place = place();
    let before = place.read("kernel.toml");
    place.run("import kernel-tuner cache.json --kernel twice --dry-run").expect(0).says("2 hints of `twice` on A100");
    assert_eq!(place.read("kernel.toml"), before);
    let said = place.run("import kernel-tuner cache.json --kernel twice").expect(0);
    said.says("2 hints of `twice` on A100; 1 outside of the space of the kernel; 1 without a time")
        .says("`unroll` is no tunable of `twice`");
    let after = place.read("kernel.toml");
    let at = |text: &str| after.find(text).unwrap_or_else(|| panic!("{text}\n{after}"));
    assert!(at("hints = [") < at("{ BLOCK = 64 }") && at("{ BLOCK = 64 }") < at("{ BLOCK = 32 }"), "{after}");
    assert!(!after.contains("0.5"), "no time is kept: {after}");
    place.run("metadata --format-version 1").expect(0);
    // The same cache gives the same manifest.
    place.run("import kernel-tuner cache.json --kernel twice").expect(0);
    assert_eq!(place.read("kernel.toml"), after);
}

#[test]
fn what_gives_no_hints_is_refused_and_the_manifest_stays() {
    let place = place();
    let before = place.read("kernel.toml");
    let refused = |words: &str, text: &str| {
        place.run(&format!("import kernel-tuner {words}")).expect(101).says(text);
        assert_eq!(place.read("kernel.toml"), before, "{words}");
    };
    refused("none.json --kernel twice", "cannot read `none.json`");
    refused("cache.json --kernel other", "the manifest has no kernel `other`");
    refused("twice.cu --kernel twice", "it is not a cache of Kernel Tuner");
    place.edit("cache.json", "\"unroll\": 2, ", "");
    refused("cache.json --kernel twice", "`cache.64,2.unroll` is missing");
    place.edit("kernel.toml", "strategy = \"random\"\n", "");
    let said = place.run("import kernel-tuner cache.json --kernel twice").expect(101);
    said.says("`cache.64,2.unroll` is missing");
    place.edit("cache.json", "\"BLOCK\": 64, \"time\": \"R", "\"BLOCK\": 64, \"unroll\": 2, \"time\": \"R");
    place.run("import kernel-tuner cache.json --kernel twice").expect(101).says("visits every variant");
    place
        .run("import kernel-tuner cache.json --kernel twice --map BLOCK")
        .expect(2)
        .says("expected `PARAMETER=TUNABLE`");
}
