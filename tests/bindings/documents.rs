//! Artifacts of packages that were never built: what `kforge package` would pack if a given variant were the champion, with bytes that are no machine code. So
//! loaders are compared with kforge for launches that nobody measured.

use std::collections::BTreeMap;
use std::path::Path;

use crate::specialised::{Specialised, specialised};
use kforge::base::Digest;
use kforge::model::description::ActionDescription;
use kforge::model::{Arch, Kernel, Metric, Operator, Package, Shape, Target, TypeChoice, Variant};
use kforge::optimize::templates::TEMPLATES;
use kforge::record::machine_code;
use kforge::release::artifact::KERNELS;
use kforge::release::artifact::files::{ArtifactFiles, Index, PackageIdentity};
use kforge::release::artifact::kernels::{
    FORMAT_VERSION, KernelsDocument, PackagedClass, PackagedKernel, PackagedShape, PackagedVariant,
};
use kforge::release::bindings::plan::Function;
use kforge::release::bindings::{Plan, plan};
use kforge::workspace;

/// A variant at a shape.
pub(crate) struct Case {
    pub(crate) kernel: Kernel,
    pub(crate) operator: Operator,
    pub(crate) choice: TypeChoice,
    pub(crate) variant: Variant,
    pub(crate) shape: Shape,
    pub(crate) function: String,
    /// The machine code that serves the shape, if the kernel is written in Triton.
    pub(crate) specialised: Option<Specialised>,
}

/// A package with one champion for each class of each kernel.
pub(crate) struct Sample {
    pub(crate) plan: Plan,
    /// The artifact, without sources and evidence.
    pub(crate) files: ArtifactFiles,
    pub(crate) document: KernelsDocument,
    pub(crate) cases: Vec<Case>,
}

/// The packages of a manifest's workspace.
pub(crate) fn packages(manifest: &Path) -> Vec<Package> {
    let (workspace, wrong) = workspace::load(manifest, &TEMPLATES);
    let workspace = workspace.unwrap_or_else(|| panic!("{}: {wrong:?}", manifest.display()));
    workspace.members.into_iter().map(|member| member.package).collect()
}

/// The name of an entry in a binary, another one for each kernel and choice of types.
pub(crate) fn symbol(kernel: &Kernel, choice: &TypeChoice, entry: &str, specialised: Option<&Specialised>) -> String {
    let class = specialised.map_or(String::new(), |specialised| format!(" {}", specialised.class));
    let all = format!("{} {} {entry}{class}", kernel.name, choice.label);
    let letters: String = all.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("_Z{letters}")
}

/// The package with the `at`-th variant of each kernel as its champion; none if it has no kernel for a GPU.
pub(crate) fn sample(package: &Package, at: usize) -> Option<Sample> {
    let (mut kernels, mut files, mut cases) = (vec![], BTreeMap::new(), vec![]);
    for kernel in &package.kernels {
        let operator = package.operator(&kernel.operator).unwrap();
        for choice in operator.choices() {
            for name in &kernel.targets {
                let target = &package.targets[name];
                if !matches!(&target.arch, Arch::Sm(arch) if arch == "sm_90a") {
                    continue;
                }
                let Some(packaged) = packaged(kernel, operator, &choice, target, at, &mut files, &mut cases) else {
                    continue;
                };
                kernels.push(packaged);
            }
        }
    }
    if kernels.is_empty() {
        return None;
    }
    let document = KernelsDocument { format_version: FORMAT_VERSION, kernels };
    let identity =
        PackageIdentity { name: package.name.clone(), version: package.version.clone(), license: "MIT".into() };
    let bytes = kforge::release::artifact::files::document(&document).unwrap();
    files.insert(KERNELS.into(), bytes);
    let files = ArtifactFiles::new(files).unwrap().indexed(identity).unwrap();
    let index: Index = files.index().unwrap();
    let plan = plan(&index, &files, &document).unwrap();
    // Names of functions come from the plan, in the order of kernels and choices.
    for case in &mut cases {
        let values: Vec<&str> = case.choice.label.split(',').filter_map(|one| one.split('=').nth(1)).collect();
        let title = format!("Kernel `{}`", case.kernel.name);
        let of_types = |f: &&Function| values.iter().all(|value| f.name.split('_').any(|part| part == *value));
        let function = plan.functions.iter().filter(|f| f.title.starts_with(&title)).find(of_types);
        case.function = function.unwrap().name.clone();
    }
    Some(Sample { plan, files, document, cases })
}

fn packaged(
    kernel: &Kernel,
    operator: &Operator,
    choice: &TypeChoice,
    target: &Target,
    at: usize,
    files: &mut BTreeMap<String, Vec<u8>>,
    cases: &mut Vec<Case>,
) -> Option<PackagedKernel> {
    let variants = kernel.variants(target, choice).unwrap();
    let mut classes: Vec<PackagedClass> = vec![];
    let (mut packed, mut shapes): (Vec<PackagedVariant>, Vec<PackagedShape>) = (vec![], vec![]);
    for shape in &operator.shapes {
        let Ok(problem) = operator.bind(choice, shape) else { continue };
        let serves = |variant: &&Variant| {
            kernel.serves(variant, operator, choice, shape).unwrap()
                && kernel.launches(variant, choice, &problem).is_ok()
        };
        let specialised = |variant: &Variant| specialised(operator, kernel, variant, choice, &problem);
        let name = kernel.class_of(operator, choice, shape).unwrap();
        let known = classes.iter().position(|class| class.class == name);
        let label = known.map(|class| classes[class].variant.clone());
        let serving: Vec<&Variant> = variants.iter().filter(serves).collect();
        let variant = match &label {
            Some(label) => serving.iter().find(|variant| variant.label == *label).copied(),
            None => serving.get(at % serving.len().max(1)).copied(),
        };
        let Some(variant) = variant else { continue };
        match known {
            Some(class) => classes[class].shapes.push(shape.name.clone()),
            None => classes.push(PackagedClass {
                class: name.clone(),
                shapes: vec![shape.name.clone()],
                variant: variant.label.clone(),
                because: String::new(),
            }),
        }
        let own = specialised(variant);
        let specialization = own.as_ref().map_or(String::new(), |own| own.class.clone());
        if !packed.iter().any(|known| known.variant == variant.label && known.specialization == specialization) {
            let launch = match &own {
                Some(own) => own.described.clone(),
                None => kernel.sequence(variant, choice, &problem).unwrap(),
            };
            let entries = launch.launches.iter().filter_map(|launch| match &launch.action {
                ActionDescription::Kernel { entry, .. } => {
                    Some((entry.clone(), symbol(kernel, choice, entry, own.as_ref())))
                }
                ActionDescription::Memset { .. } => None,
            });
            let symbols = entries.collect();
            let names = [&kernel.name, &choice.label, &variant.label, &specialization];
            let entries = own.as_ref().map_or_else(Vec::new, |own| own.entries.clone());
            let members = if entries.len() > 1 { entries } else { vec![] };
            let cubin = |entry: &str| format!("\x7fELF {names:?} {entry}").into_bytes();
            let bytes = match members.is_empty() {
                true => cubin(""),
                false => machine_code::joined(members.iter().map(|entry| cubin(entry)).collect()),
            };
            let binary = format!("binaries/{}.cubin", Digest::of(&bytes).short());
            let digest = Digest::of(&bytes);
            files.insert(binary.clone(), bytes);
            packed.push(PackagedVariant {
                variant: variant.label.clone(),
                specialization: specialization.clone(),
                binary,
                digest,
                ptx: None,
                fatbin: None,
                members,
                compilation: digest,
                sources: BTreeMap::new(),
                symbols,
                launch,
            });
        }
        shapes.push(PackagedShape {
            shape: shape.name.clone(),
            role: shape.role,
            dims: problem.dims.clone(),
            class: name,
            variant: variant.label.clone(),
            specialization,
            tolerance: BTreeMap::new(),
            worst: None,
            verification: Digest::of(b""),
            confirmation: None,
            time: None,
        });
        // The device of the tests is an H200.
        if target.device.as_deref() != Some("NVIDIA H100") {
            cases.push(Case {
                kernel: kernel.clone(),
                operator: operator.clone(),
                choice: choice.clone(),
                variant: variant.clone(),
                shape: shape.clone(),
                function: String::new(),
                specialised: own,
            });
        }
    }
    let per = match &kernel.select.per {
        kforge::model::Per::Value(expr) => Some(expr.text().to_string()),
        _ => None,
    };
    if packed.is_empty() {
        return None;
    }
    let product = target.device.clone().unwrap_or("NVIDIA H200".into());
    Some(PackagedKernel {
        kernel: kernel.name.clone(),
        operator: operator.name.clone(),
        types: choice.label.clone(),
        target: target.name.clone(),
        arch: "sm_90a".into(),
        devices: vec![format!("{product} (sm_90, driver 580)")],
        metric: Metric::Cold,
        interface: operator.interface(choice).unwrap(),
        per,
        classes,
        variants: packed,
        shapes,
        methods: vec![],
        records: BTreeMap::new(),
    })
}
