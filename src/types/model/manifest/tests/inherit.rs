//! Members of workspaces, and overlays.

use super::{file, package, show, under};
use crate::model::{Budget, CudaSpec, Dependency, Search, Strategy, inherit, overlay, parse};

const ROOT: &str = "[workspace]\nmembers = ['a']\n[workspace.package]\nversion = '3.0.0'\nlicense = 'MIT'\n[workspace.toolchain]\ncuda = { path = 'cuda' }\n\
    [workspace.targets.big]\narch = 'sm_90a'\n[workspace.dependencies]\nlib = { path = 'lib' }\n";

#[test]
fn a_member_takes_what_it_names_from_the_root() {
    let (root, found) = parse(&file(ROOT));
    assert!(found.is_empty());
    let member = "[package]\nname = 'a'\nversion.workspace = true\nlicense.workspace = true\n[toolchain]\nworkspace = true\n[targets]\nbig.workspace = true\n[dependencies]\nlib = { workspace = true }\n";
    let (member, found) = parse(&file(member));
    assert!(found.is_empty());
    let (package, found) = inherit(&member.unwrap(), root.as_ref());
    assert!(found.is_empty(), "{:?}", found.iter().map(show).collect::<Vec<_>>());
    let package = package.unwrap();
    assert_eq!((package.version.as_str(), package.license.as_deref()), ("3.0.0", Some("MIT")));
    assert_eq!(package.toolchain.cuda, Some(CudaSpec::Path("cuda".into())));
    assert_eq!(package.dependencies["lib"], Dependency::Path { path: "lib".into(), include: ".".into() });
    assert_eq!(package.targets["big"].arch.name(), "sm_90a");
    assert_eq!(package.from_root.iter().collect::<Vec<_>>(), ["lib", "toolchain.cuda"]);
}

#[test]
fn what_the_root_lacks_is_named() {
    let (root, _) = parse(&file(ROOT));
    let member = "[package]\nname = 'a'\nkforge.workspace = true\n[targets]\nsmall.workspace = true\n[dependencies]\nother.workspace = true\n";
    let (member, _) = parse(&file(member));
    let (_, found) = inherit(&member.unwrap(), root.as_ref());
    let said: Vec<_> = found.iter().map(|d| (d.code, d.expected.clone().unwrap_or_default())).collect();
    let expected = |key: &str| ("manifest.not-inherited", format!("`workspace.{key}` in the root manifest"));
    assert_eq!(said, [expected("package.kforge"), expected("targets.small"), expected("dependencies.other")]);
}

#[test]
fn a_virtual_root_has_no_package() {
    let (root, found) = parse(&file(ROOT));
    assert!(found.is_empty());
    let (package, found) = inherit(&root.unwrap(), None);
    assert!(package.is_none());
    assert_eq!(found[0].code, "manifest.no-package");
}

#[test]
fn a_package_without_targets_is_for_the_emulator_and_kernels_for_all_targets() {
    let text = include_str!("example.toml").replace("targets = [\"cpu\", \"h200\"]", "");
    assert_eq!(package(&text).kernels[0].targets, ["cpu", "h200"]);
    let bare =
        text.replace("[targets.cpu]", "").replace("[targets.h200]\narch = \"sm_90a\"\ndevice = \"NVIDIA H200\" ", "");
    assert_eq!(package(&bare).kernels[0].targets, ["cpu"]);
}

#[test]
fn an_overlay_adds_shapes_and_operators() {
    let mut package = package(include_str!("example.toml"));
    let text = "[operator.rms_norm.shapes]\nhard = { rows = 5, cols = 8, role = 'holdout' }\n[operator.copy]\ndims = ['n']\ninputs.x = { dtype = 'f32', shape = ['n'] }\n\
        outputs.y = { dtype = 'f32', shape = ['n'] }\nreference = 'builtin:copy'\nshapes.one = { n = 1 }\n";
    let (manifest, found) = parse(&file(text));
    assert!(found.is_empty(), "{:?}", found.iter().map(show).collect::<Vec<_>>());
    assert_eq!(overlay(&mut package, &manifest.unwrap()), []);
    assert_eq!(package.operator("rms_norm").unwrap().shapes.last().unwrap().name, "hard");
    assert!(package.operator("copy").is_some());
}

#[test]
fn an_overlay_adds_seeds_and_nothing_else_may() {
    let mut package = package(include_str!("example.toml"));
    let (manifest, found) =
        parse(&file("[operator.rms_norm]\nseeds = [7, 0x10]\nshapes.hard = { rows = 5, cols = 8 }\n"));
    assert_eq!((found, overlay(&mut package, &manifest.unwrap())), (vec![], vec![]));
    let operator = package.operator("rms_norm").unwrap();
    assert_eq!((&operator.seeds[..], operator.shapes.last().unwrap().name.as_str()), (&[7, 16][..], "hard"));
    let (_, found) = parse(&file("[operator.rms_norm]\nseeds = [7, -1, 7]\n"));
    assert_eq!(
        found.iter().map(|d| (d.code, under(d))).collect::<Vec<_>>(),
        [("manifest.value", "-1"), ("manifest.duplicate-name", "7")]
    );
    let text =
        include_str!("example.toml").replace("dims = [\"rows\", \"cols\"]", "dims = [\"rows\", \"cols\"]\nseeds = [7]");
    let (_, found) = inherit(&parse(&file(&text)).0.unwrap(), None);
    assert_eq!(found.iter().map(|d| d.code).collect::<Vec<_>>(), ["manifest.overlay"]);
}

#[test]
fn an_overlay_that_does_not_fit_is_refused() {
    let refused = |text: &str| {
        let mut package = package(include_str!("example.toml"));
        let (manifest, found) = parse(&file(text));
        assert!(found.is_empty(), "{:?}", found.iter().map(show).collect::<Vec<_>>());
        let found = overlay(&mut package, &manifest.unwrap());
        found.iter().map(|d| (d.code, under(d).to_string())).collect::<Vec<_>>()
    };
    assert_eq!(refused("[operator.rmsnorm.shapes]\n"), [("manifest.unknown-operator", "rmsnorm".into())]);
    let twice = "[operator.rms_norm.shapes]\nllama = { rows = 1, cols = 1 }\nodd = { rows = 1, colls = 1 }\n";
    let expected = [("manifest.duplicate-name", "llama"), ("manifest.unknown-dim", "colls")];
    assert_eq!(refused(twice), expected.map(|(code, at)| (code, at.to_string())));
    assert_eq!(refused("[package]\nname = 'a'\n")[0].0, "manifest.overlay");
}

#[test]
fn shapes_alone_are_no_operator_of_a_package() {
    let (manifest, found) = parse(&file("[package]\nname = 'a'\n[operator.x.shapes]\none = { n = 1 }\n"));
    assert!(found.is_empty());
    let (_, found) = inherit(&manifest.unwrap(), None);
    assert_eq!((found[0].code, under(&found[0])), ("manifest.missing-key", "x"));
}

#[test]
fn a_tunable_whose_name_is_like_where_is_a_tunable() {
    let text = include_str!("example.toml").replace("VEC = [1, 4]", "VEC = [1, 4]\nwhero = ['row', 'col']");
    assert_eq!(package(&text).kernels[0].tune[2].0.as_str(), "whero");
}

#[test]
fn how_a_space_is_searched_stands_beside_its_tunables() {
    let stated = |keys: &str| {
        let text = include_str!("example.toml").replace("VEC = [1, 4]", &format!("VEC = [1, 4]\n{keys}"));
        let package = package(&text);
        assert_eq!(package.kernels[0].tune.len(), 2, "no key of a search is a tunable");
        package.kernels[0].search
    };
    assert_eq!(stated(""), Search::default());
    assert_eq!(Search::default().strategy, Strategy::Exhaustive);
    let model = stated("strategy = 'model'\nseed = 7");
    let variants = |n| Budget { variants: Some(n), seconds: None };
    assert_eq!(model, Search { strategy: Strategy::Model, budget: variants(64), seed: 7 });
    let seconds = stated("strategy = 'random'\nbudget = { seconds = 60 }");
    assert_eq!(seconds.budget, Budget { variants: None, seconds: Some(60) });
    assert_eq!((seconds.sample_of(1000), seconds.sample_of(3)), (64, 3), "where nothing is timed no second is spent");
    assert_eq!(stated("strategy = 'annealing'\nbudget = { variants = 40 }").budget, variants(40));
}
