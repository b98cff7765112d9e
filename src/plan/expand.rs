//! Steps that are known only once a champion is: its machine code, and for each of its methods the variant without it, compared. Pure.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use super::context::{Planner, Scope};
use super::kernels::Selected;
use super::make::Make;
use super::variants::Build;
use crate::engine::{Expand, Node};
use crate::model::{Arch, Kernel, Method};
use crate::record::params::{AttributeParams, InspectParams, MatchParams, Selection};
use crate::record::{StepKind, StepResult};

/// Share of time that the lower bound of a method's saving must exceed (design, section 9, step 5).
const THRESHOLD: f64 = 0.02;

/// Adds what a selection makes known.
pub struct Expander<'a> {
    planner: Mutex<Planner<'a>>,
}

impl<'a> Expander<'a> {
    /// Over a finished plan, whose nodes have been taken out.
    pub fn new(planner: Planner<'a>) -> Self {
        Expander { planner: Mutex::new(planner) }
    }

    /// What each select node stands for.
    pub fn selected(&self, id: &str) -> Option<Arc<Selected>> {
        self.planner.lock().ok()?.selected.get(id).cloned()
    }
}

impl Expand for Expander<'_> {
    fn expand(&self, node: &Node, _: &StepResult, read: &dyn Fn(&str) -> Option<Vec<u8>>) -> Result<Vec<Node>, String> {
        let bytes = read("selection").ok_or("the selection is not in the store")?;
        let selection: Selection = serde_json::from_slice(&bytes).map_err(|e| e.to_string())?;
        let mut planner = self.planner.lock().map_err(|_| "BUG: planning panicked before")?;
        let Some(selected) = planner.selected.get(&node.id).cloned() else { return Ok(vec![]) };
        // One champion may stand for several classes.
        let champions: BTreeSet<u32> = selection.champions.iter().filter_map(|c| c.variant).collect();
        for champion in champions {
            planner.champion(&selected, champion).map_err(|d| d.message)?;
        }
        Ok(std::mem::take(&mut planner.nodes))
    }
}

impl Planner<'_> {
    fn champion(&mut self, selected: &Selected, champion: u32) -> Result<(), crate::base::Diagnostic> {
        let package = self.package_input(selected.package).package;
        // All three were found when the select node was made.
        let Some(kernel) = package.kernels.iter().find(|k| k.name == selected.kernel) else { return Ok(()) };
        let Some(operator) = package.operators.iter().find(|o| o.name == kernel.operator) else { return Ok(()) };
        let Some(target) = package.targets.get(&selected.target) else { return Ok(()) };
        let Some(build) = selected.builds.iter().find(|b| b.variant.order == champion) else { return Ok(()) };
        let scope = Scope { package: selected.package, kernel, operator, choice: &selected.choice, target };
        if target.arch == Arch::Cpu {
            return Ok(());
        }
        let on = self.disassemble(scope, build);
        for method in &kernel.methods {
            if let Some(off) = self.without(scope, kernel, build, method) {
                self.method(selected, scope, build, method, &on, &off)?;
            }
        }
        Ok(())
    }

    /// The champion without a method: another variant of the space under its own name, or one built for this comparison alone.
    fn without(&self, scope: Scope<'_>, kernel: &Kernel, build: &Build, method: &Method) -> Option<Build> {
        let off = kernel.without(&build.variant, method)?;
        let mut other = self.build_of(scope, &off.variant);
        if let Some(source) = off.source {
            other.source = source;
            other.without = method.id.clone();
        }
        if !off.flags.is_empty() {
            other.flags = off.flags;
            other.without = method.id.clone();
        }
        Some(other)
    }

    /// The inspect step that counts opcodes of a variant's machine code.
    fn disassemble(&mut self, scope: Scope<'_>, build: &Build) -> String {
        let (compile, _) = self.compile(scope, build, Self::machine_compiler(scope), true);
        let params = InspectParams {
            arch: scope.target.arch.name().into(),
            entries: scope.kernel.entries(&build.variant, scope.choice),
            disassemble: true,
            launches: vec![],
        };
        let mut parts = self.parts(scope, build);
        parts.push("sass");
        let tools = &self.package_input(scope.package).toolchains;
        let node = Make::new(StepKind::Inspect, &parts, self.labels(scope, build, None), &params)
            .ablation(true)
            .output("binary", &compile, "binary")
            .output("facts", &compile, "facts")
            .tool("toolchain", &tools.disassembler)
            .done();
        self.add(node)
    }

    fn method(
        &mut self,
        selected: &Selected,
        scope: Scope<'_>,
        build: &Build,
        method: &Method,
        on: &str,
        off: &Build,
    ) -> Result<(), crate::base::Diagnostic> {
        let without = self.disassemble(scope, off);
        let mut labels = self.labels(scope, build, None);
        labels.method = Some(method.id.clone());
        let mut parts = self.parts(scope, build);
        parts.push(&method.id);
        let signature = method.signature_for(scope.target.arch.name()).cloned();
        let matching = Make::new(StepKind::Match, &parts, labels.clone(), &MatchParams { signature })
            .ablation(true)
            .output("on", on, "inspection")
            .output("off", &without, "inspection")
            .done();
        let mut attribute =
            Make::new(StepKind::Attribute, &parts, labels, &AttributeParams { threshold: THRESHOLD }).ablation(true);
        let matching = self.add(matching);
        attribute = attribute.optional("match", &matching, "match");
        // The kernel without the method must be right too, on the first bench shape it serves, or on the first shape at all.
        let mut served = Vec::new();
        for (at, case) in selected.cases.iter().enumerate() {
            let shape = &scope.operator.shapes[case.at];
            if scope.kernel.serves(&off.variant, scope.operator, scope.choice, shape)? {
                served.push((at, case, super::context::is_benched(shape)));
            }
        }
        if let Some((at, case, _)) = served.iter().find(|(.., b)| *b).or(served.first()) {
            let calibrated = selected.calibrate.as_ref().map(|(id, first)| (id.clone(), first[*at]));
            let judge = self.verify(scope, off, case, calibrated.as_ref(), true)?;
            attribute = attribute.optional("judgement", &judge, "judgement");
        }
        self.add(attribute.done());
        Ok(())
    }
}
