//! Kernels of a source with their launches: what the source says, before anything is guessed. Knows declarations of kernels, namespaces, parameters of templates
//! and aliases of types; if a kernel has several launches, it takes the one that a manifest can state most completely.

use std::collections::{BTreeMap, BTreeSet};

use super::super::declarations::closing;
use super::super::macros::spelled;
use super::super::part::{Part, What};
use super::super::tokens::{Token, tokens};
use super::super::{Place, Sources};
use super::arithmetic::ceil_div;
use super::constants::{Constant, constants};
use super::expression::{Expression, Scope, expression, shown, split};
use super::host::{Launched, aliases};
use super::launch::Launch;
use super::naming::{is_usable, renamed};
use super::parameter::{Parameter, parameters};
use super::structs::{Members, members};
use super::template::{generics, instance};

/// A kernel as its source states it.
#[derive(Debug, Clone)]
pub(super) struct Kernel {
    /// Without namespaces.
    pub(super) name: String,
    pub(super) place: Place,
    /// The file to compile: that of the place, or one that includes it.
    pub(super) source: String,
    /// The folders of the package that its source includes from.
    pub(super) include: Vec<String>,
    /// What the manifest names: with namespaces, template arguments and, for an overload, types of parameters.
    pub(super) entry: String,
    /// What is to be checked of the entry.
    pub(super) entry_check: Option<String>,
    pub(super) parameters: Vec<Parameter>,
    /// The members of parameters that are structs, as far as they can be read.
    pub(super) structs: BTreeMap<String, Option<Members>>,
    /// The numbers that parameters of the template have.
    pub(super) values: BTreeMap<String, i64>,
    /// The body with macros expanded.
    pub(super) body: Vec<Token>,
    /// Names of integers that a shape binds: parameters, or variables of the launcher.
    pub(super) dims: Vec<String>,
    /// An argument for each scalar parameter that is an integer, over `dims`.
    pub(super) integers: BTreeMap<String, Expression>,
    /// The pointers for which the launch passes none.
    pub(super) nulls: BTreeSet<String>,
    /// Numbers that host code checks to divide parameters.
    pub(super) checked: Vec<(String, i64)>,
    /// The tensors that the launch passes by tensor descriptors.
    pub(super) described: BTreeSet<String>,
    /// The constants that host code fills.
    pub(super) constants: Vec<Constant>,
    pub(super) grid: Extents,
    pub(super) block: Extents,
    pub(super) shared: Option<Extents>,
    /// Where it is launched.
    pub(super) launched: Option<Place>,
}

/// Extents: an expression over dims each, or what the source states in place of one.
#[derive(Debug, Clone, Default)]
pub(super) struct Extents {
    pub(super) known: Vec<Expression>,
    /// The first that cannot be stated, as the source spells it.
    pub(super) unknown: Option<String>,
    /// Why what is known is a guess.
    pub(super) assumed: Option<String>,
}

impl Extents {
    /// The same, with names of the kernel's parameters as they are.
    fn unmarked(mut self) -> Self {
        let plain = |e: &Expression| match e {
            Expression::Name(name) => name.strip_prefix(OF_KERNEL).map(|name| Expression::Name(name.into())),
            _ => None,
        };
        self.known = self.known.iter().map(|e| e.renamed(&plain)).collect();
        self
    }
}

/// What a name of the kernel begins with while names of its launcher stand beside it.
const OF_KERNEL: char = '\u{1}';

/// The threads of a block, where the launcher takes them as a parameter.
const USUAL_BLOCK: i64 = 256;

/// The kernels that a source defines in the files that `own` names: the main one, and headers that are compiled with it alone.
pub(super) fn kernels(sources: &Sources<'_>, launches: &[Launched], own: &dyn Fn(&str) -> bool) -> Vec<Kernel> {
    let aliases = aliases(sources);
    let own = sources.groups.iter().filter(|group| own(&sources.files[group.file].name));
    let defined: Vec<(usize, usize, &Part)> = own
        .flat_map(|group| group.parts.iter().map(move |part| (group.file, group.range.from, part)))
        .filter(|(_, _, part)| part.kernel && part.what == What::Function && !is_specialization(part))
        .filter(|(_, _, part)| part.tokens.last().is_some_and(|t| t.is("}")))
        .collect();
    let names: Vec<String> = defined.iter().filter_map(|(_, _, part)| part.names.iter().next_back().cloned()).collect();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut out = vec![];
    for (file, from, part) in defined {
        let Some(name) = part.names.iter().next_back().cloned() else { continue };
        let line = part.tokens.first().map_or(1, |t| t.line);
        let place = Place { file: sources.files[file].name.clone(), line };
        let overloaded = names.iter().filter(|n| **n == name).count() > 1;
        let space = namespaces(&sources.files[file].tokens[..from]);
        let qualified = [space, vec![name.clone()]].concat().join("::");
        let kernel = kernel(sources, part, &qualified, name, place, launches, &aliases, overloaded);
        // Branches of a condition may define one kernel twice.
        if seen.insert(format!("{} {}", kernel.entry, part.parameters)) {
            out.push(kernel);
        }
    }
    out
}

/// Whether a kernel is a specialization of a template: `k<float>(...)`.
fn is_specialization(part: &Part) -> bool {
    part.header.iter().position(|t| t.is("template")).is_some_and(|at| {
        part.header.get(at + 1).is_some_and(|t| t.is("<")) && part.header.get(at + 2).is_some_and(|t| t.is(">"))
    })
}

/// The namespaces that are open at the end of a text.
pub(super) fn namespaces(text: &[Token]) -> Vec<String> {
    let mut open: Vec<Vec<String>> = vec![];
    for (at, token) in text.iter().enumerate() {
        if token.is("{") {
            let names = (0..at).rev().take_while(|i| text[*i].is_word() || text[*i].is("::")).collect::<Vec<_>>();
            let names: Vec<String> =
                names.into_iter().rev().filter(|i| text[*i].is_word()).map(|i| text[i].text.clone()).collect();
            let space = names.iter().position(|word| word == "namespace");
            open.push(space.map_or_else(Vec::new, |at| names[at + 1..].to_vec()));
        } else if token.is("}") {
            open.pop();
        }
    }
    open.concat()
}

#[expect(clippy::too_many_arguments, reason = "what is known of one kernel")]
fn kernel(
    sources: &Sources<'_>,
    part: &Part,
    qualified: &str,
    name: String,
    place: Place,
    launches: &[Launched],
    aliases: &BTreeMap<String, Vec<String>>,
    overloaded: bool,
) -> Kernel {
    let body = part.tokens.iter().position(|t| t.is("{")).map_or(0, |at| at);
    // The body of a kernel begins behind its parameters, which may hold braces of default values.
    let body = sources.macros.expand(&part.tokens[body..]);
    let generics = generics(&part.header, aliases);
    let spaces: Vec<String> = qualified.split("::").map(String::from).collect();
    let spaces = &spaces[..spaces.len().saturating_sub(1)];
    let count = split(&tokens(&part.parameters).0).len();
    let fits = |l: &&Launched| {
        let launch = &l.launch;
        // A source that defines a kernel of this name itself launches its own.
        let meant = l.defined.is_empty() || l.defined.contains(&place.file);
        launch.kernel == name && launch.arguments.len() <= count.max(1) && meant
    };
    let fitting: Vec<&Launched> = launches.iter().filter(fits).collect();
    let same_file: Vec<&Launched> = fitting.iter().filter(|l| l.file == place.file).copied().collect();
    let candidates = if same_file.is_empty() { fitting } else { same_file };
    let mut best: Option<(usize, Kernel)> = None;
    let mut instances: Vec<String> = vec![];
    for launch in candidates.into_iter().map(Some).chain([None]) {
        if launch.is_none() && best.is_some() {
            break;
        }
        let found = instance(sources, &generics, launch, spaces, aliases);
        let mut entry_check = found.check;
        let mut types = aliases.clone();
        let mut entry = qualified.to_string();
        if !generics.is_empty() {
            entry = format!("{qualified}<{}>", found.arguments.join(", "));
            types.extend(found.types.into_iter().map(|(name, argument)| (name, vec![argument])));
        }
        let mut parameters = parameters(&part.parameters, &body, &types);
        if overloaded {
            entry = format!("{entry}({})", unnamed(&part.parameters, &types));
            let odd = parameters.iter().find_map(|p| p.doubt.as_ref());
            entry_check = entry_check.or_else(|| odd.map(|doubt| format!("the types of its parameters: {doubt}")));
        }
        let body = renamed(&mut parameters, &body);
        let by_value = parameters.iter().filter(|p| !p.pointer && p.dtype.is_none());
        let structs = by_value.filter_map(|p| Some((p.name.clone(), members(sources, &p.spelling, &types)?))).collect();
        let mut kernel = Kernel {
            structs,
            name: name.clone(),
            place: place.clone(),
            source: sources.tree.main.to_string(),
            include: sources.tree.include.to_vec(),
            entry,
            entry_check,
            parameters,
            values: found.values,
            body,
            dims: vec![],
            integers: BTreeMap::new(),
            nulls: BTreeSet::new(),
            checked: vec![],
            described: BTreeSet::new(),
            constants: vec![],
            grid: Extents::default(),
            block: Extents::default(),
            shared: None,
            launched: launch.map(|l| Place { file: l.file.clone(), line: l.launch.line }),
        };
        kernel.constants = stateable(constants(sources, &kernel.body, aliases), &kernel.parameters);
        if let Some(launch) = launch {
            let passed = kernel.parameters.iter().zip(&launch.launch.arguments);
            let nulls = passed.filter(|(p, argument)| p.pointer && is_null(argument, &launch.launch.scope));
            kernel.nulls = nulls.map(|(p, _)| p.name.clone()).collect();
        }
        configure(&mut kernel, launch.map(|l| &l.launch));
        if kernel.entry_check.is_none() && !instances.contains(&kernel.entry) {
            instances.push(kernel.entry.clone());
        }
        let unknown = [&kernel.grid, &kernel.block].iter().filter(|e| e.unknown.is_some()).count() * 2;
        let score = unknown + usize::from(kernel.entry_check.is_some()) * 3 + usize::from(!kernel.nulls.is_empty());
        if best.as_ref().is_none_or(|(least, _)| score < *least) {
            best = Some((score, kernel));
        }
    }
    let mut found = best.expect("BUG: a kernel without a launch is a candidate, too").1;
    let others: Vec<String> = instances.iter().filter(|e| **e != found.entry).map(|e| format!("`{e}`")).collect();
    if !others.is_empty() && found.entry_check.is_none() {
        found.entry_check = Some(format!("launched also as {}", others.join(", ")));
    }
    found
}

/// Constants, those as tensors whose names a manifest can use beside parameters.
fn stateable(mut all: Vec<Constant>, parameters: &[Parameter]) -> Vec<Constant> {
    for one in &mut all {
        one.tensor =
            one.tensor.take().filter(|_| is_usable(&one.name) && parameters.iter().all(|p| p.name != one.name));
    }
    all
}

/// Whether an argument is a null pointer: `nullptr`, `(float *)NULL`, `0`, or a variable that is one.
fn is_null(argument: &[Token], scope: &Scope) -> bool {
    let value = match argument.first().filter(|t| t.is("(")).and_then(|_| closing(argument, 0)) {
        Some(close) if close + 1 < argument.len() => &argument[close + 1..],
        _ => argument,
    };
    match expression(value, scope).resolved(scope) {
        Expression::Name(name) => name == "nullptr" || name == "NULL",
        Expression::Int(0) => value.len() == 1,
        _ => false,
    }
}

/// The types of parameters without names, with aliases and arguments of templates in place.
fn unnamed(text: &str, types: &BTreeMap<String, Vec<String>>) -> String {
    let (all, _) = tokens(text);
    let of = |text: &[Token]| {
        let end = text.iter().position(|t| t.is("=")).unwrap_or(text.len());
        let named = text[..end].iter().rposition(Token::is_word).unwrap_or(end);
        let kept = text[..named].iter().filter(|t| !t.text.contains("restrict"));
        let kept = kept.map(|t| match types.get(&t.text).and_then(|all| all.first()) {
            Some(other) if t.is_word() => Token { text: other.clone(), ..t.clone() },
            _ => t.clone(),
        });
        spelled(&kept.collect::<Vec<_>>())
    };
    split(&all).into_iter().map(of).collect::<Vec<_>>().join(", ")
}

/// Reads grid, block, shared memory and integers of a launch.
fn configure(kernel: &mut Kernel, launch: Option<&Launch>) {
    let integers: Vec<(usize, String)> = kernel
        .parameters
        .iter()
        .enumerate()
        .filter(|(_, p)| !p.pointer && p.dtype.is_some_and(|d| d.starts_with(['i', 'u'])))
        .map(|(at, p)| (at, p.name.clone()))
        .collect();
    let own = |kernel: &mut Kernel| {
        kernel.dims = integers.iter().map(|(_, name)| name.clone()).collect();
        kernel.integers = integers.iter().map(|(_, name)| (name.clone(), Expression::Name(name.clone()))).collect();
    };
    own(kernel);
    let Some(launch) = launch else {
        kernel.grid.unknown = Some("no launch was found".into());
        kernel.block.unknown = kernel.grid.unknown.clone();
        return;
    };
    let mut scope = launch.scope.clone();
    for (name, value) in &kernel.values {
        scope.values.entry(name.clone()).or_insert(Expression::Int(*value));
    }
    let given: Vec<(String, Expression)> = integers
        .iter()
        .filter_map(|(at, name)| Some((name.clone(), expression(launch.arguments.get(*at)?, &scope))))
        .collect();
    let read = |at: usize| -> Vec<(Expression, String)> {
        let Some(text) = launch.configuration.get(at) else { return vec![] };
        let whole = shown(text);
        if let [one] = &text[..]
            && let Some(all) = scope.extents.get(&one.text)
        {
            return all.iter().map(|e| (e.clone(), unstated(e, &whole))).collect();
        }
        if text.first().is_some_and(|t| t.is("dim3"))
            && let Some(open) = text.iter().position(|t| t.is("(") || t.is("{"))
            && let Some(close) = closing(text, open)
        {
            return split(&text[open + 1..close]).into_iter().map(|t| (expression(t, &scope), shown(t))).collect();
        }
        vec![(expression(text, &scope), whole)]
    };
    // First by what the kernel is given, then by the launcher's own variables.
    let by_argument = |e: &Expression| {
        let found = given.iter().find(|(_, argument)| !matches!(argument, Expression::Int(_)) && argument == e);
        found
            .or_else(|| {
                let whole = e.resolved(&scope);
                let same = |argument: &Expression| {
                    let argument = argument.resolved(&scope);
                    !matches!(argument, Expression::Int(_)) && argument == whole
                };
                given.iter().find(|(_, argument)| same(argument))
            })
            .map(|(name, _)| Expression::Name(format!("{OF_KERNEL}{name}")))
    };
    let of_parameter = |(e, by): &(Expression, i64)| match by_argument(e)? {
        Expression::Name(name) => Some((name.trim_start_matches(OF_KERNEL).to_string(), *by)),
        _ => None,
    };
    kernel.checked = launch.checked.iter().filter_map(of_parameter).collect();
    let parameters: BTreeSet<&String> = integers.iter().map(|(_, name)| name).collect();
    let extents = |all: Vec<(Expression, String)>,
                   known: &dyn Fn(&Expression) -> Option<Expression>,
                   allowed: &dyn Fn(&String) -> bool| {
        let mut out = Extents::default();
        for (e, text) in all {
            let e = e.rewritten(&scope, known, 12);
            let doubts = e.doubts();
            let e = e.first();
            match e.names() {
                Some(names) if names.iter().all(allowed) => {
                    if !doubts.is_empty() {
                        out.assumed = Some(doubts.join(", "));
                    }
                    out.known.push(e);
                }
                _ => out.unknown = out.unknown.take().or(Some(text)),
            }
        }
        while out.known.len() > 1 && out.known.last() == Some(&Expression::Int(1)) {
            out.known.pop();
        }
        out
    };
    let of_kernel = |name: &String| name.starts_with(OF_KERNEL);
    let shared = |known: &dyn Fn(&Expression) -> Option<Expression>, allowed: &dyn Fn(&String) -> bool| {
        let all = read(2);
        let some = all.iter().any(|(e, _)| e.resolved(&scope) != Expression::Int(0));
        some.then(|| extents(all, known, allowed))
    };
    kernel.grid = extents(read(0), &by_argument, &of_kernel).unmarked();
    kernel.block = extents(read(1), &by_argument, &of_kernel).unmarked();
    kernel.shared = shared(&by_argument, &of_kernel).map(Extents::unmarked);
    let numbers = given.iter().filter_map(|(name, argument)| match argument.resolved(&scope) {
        Expression::Int(value) => Some((name.clone(), value)),
        _ => None,
    });
    by_dims(kernel, &numbers.collect::<Vec<_>>());
    if kernel.grid.unknown.is_none() && kernel.block.unknown.is_none() {
        return;
    }
    // The size of a block that the launcher takes from its caller.
    let passed: Vec<String> = given.iter().flat_map(|(_, e)| e.resolved(&scope).names().unwrap_or_default()).collect();
    let of_block = |(e, _): (Expression, String)| e.resolved(&scope).names().unwrap_or_default();
    let assumed = read(1).into_iter().flat_map(of_block).find(|name| {
        !passed.contains(name) && !parameters.contains(name) && name.to_ascii_lowercase().contains(['b', 't'])
    });
    if let Some(name) = assumed.filter(|name| !scope.values.contains_key(name)) {
        let mut launch = launch.clone();
        launch.scope.values.insert(name.clone(), Expression::Int(USUAL_BLOCK));
        configure(kernel, Some(&launch));
        kernel.block.assumed = Some(format!(
            "the launcher does not state `{name}`: it is given, or found at run time; {USUAL_BLOCK} is a usual value"
        ));
        return;
    }
    // A variable that is passed alone has the name of its parameter.
    let resolved: Vec<(String, Expression)> = given.iter().map(|(n, e)| (n.clone(), e.resolved(&scope))).collect();
    let alone = |e: &Expression| {
        let found = resolved.iter().find(|(_, argument)| matches!(argument, Expression::Name(_)) && argument == e);
        found.map(|(name, _)| Expression::Name(name.clone()))
    };
    let any = |_: &String| true;
    let grid = extents(read(0), &alone, &any);
    let block = extents(read(1), &alone, &any);
    let arguments: Option<BTreeMap<String, Expression>> = resolved
        .iter()
        .map(|(name, e)| {
            let e = e.renamed(&alone);
            e.names().map(|_| (name.clone(), e))
        })
        .collect();
    let (None, None, Some(arguments)) = (&grid.unknown, &block.unknown, arguments) else { return };
    if arguments.len() != integers.len() {
        return;
    }
    let mut dims: Vec<String> = vec![];
    for e in grid.known.iter().chain(&block.known).chain(integers.iter().filter_map(|(_, n)| arguments.get(n))) {
        for name in e.names().unwrap_or_default() {
            if !dims.contains(&name) {
                dims.push(name);
            }
        }
    }
    let others = kernel.parameters.iter().map(|p| &p.name).filter(|name| !parameters.contains(name));
    let others: BTreeSet<&String> = others.collect();
    let plain = |name: &String| {
        let same = || arguments[name] == Expression::Name(name.clone());
        is_usable(name) && !others.contains(name) && (!parameters.contains(name) || same())
    };
    if dims.len() > 4 || !dims.iter().all(plain) {
        return;
    }
    kernel.shared = shared(&alone, &any);
    (kernel.dims, kernel.integers, kernel.grid, kernel.block) = (dims, arguments, grid, block);
}

/// Puts dims in place of the numbers of a grid that fits one size only, as far as `arguments` show them: the numbers that the launch passes for dims.
fn by_dims(kernel: &mut Kernel, arguments: &[(String, i64)]) {
    // A kernel that reads its grid goes on behind it, at any size.
    let loops = kernel.body.iter().any(|t| t.is("gridDim"));
    let all = &kernel.grid.known;
    let is_number = all.iter().all(|e| matches!(e, Expression::Int(_)));
    if loops || kernel.dims.is_empty() || kernel.grid.unknown.is_some() || !is_number {
        return;
    }
    let mut why = vec![];
    // A dim is the number of blocks of one axis only.
    let mut taken: Vec<&str> = vec![];
    let mut of = |(axis, e): (usize, &Expression)| {
        let &Expression::Int(blocks) = e else { return e.clone() };
        if blocks <= 1 {
            return e.clone();
        }
        let threads = match kernel.block.known.get(axis) {
            Some(Expression::Int(threads)) => (*threads).max(1),
            _ => 1,
        };
        let over = |by: i64| {
            let fits = |size: i64| size.checked_add(by - 1).map(|all| all / by) == Some(blocks);
            arguments.iter().filter(|(_, size)| fits(*size)).map(|(name, _)| name.as_str()).collect::<Vec<_>>()
        };
        // Where several dims have the number of blocks, none has it by its number of threads.
        let by = if over(1).is_empty() { threads } else { 1 };
        let found = match over(by)[..] {
            [name] if !taken.contains(&name) => {
                taken.push(name);
                Some(ceil_div(Expression::Name(name.to_string()), Expression::Int(by)))
            }
            _ => None,
        };
        why.push(match &found {
            Some(found) => format!("that {blocks} stands for `{}`", found.text()),
            None => format!("that {blocks} blocks serve every size"),
        });
        found.unwrap_or_else(|| e.clone())
    };
    let known = all.iter().enumerate().map(&mut of).collect();
    kernel.grid.known = known;
    kernel.grid.assumed = kernel.grid.assumed.take().or((!why.is_empty()).then(|| why.join(", ")));
}

/// How an extent that cannot be stated is shown.
fn unstated(e: &Expression, whole: &str) -> String {
    match e {
        Expression::Opaque(text) => text.clone(),
        Expression::Name(name) => name.clone(),
        Expression::Either(..) => e.text(),
        _ => format!("{whole}: {}", e.text()),
    }
}
