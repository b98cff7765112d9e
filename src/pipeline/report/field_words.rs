//! Fields of keys in the words of the manifest: `params.tolerance.y.rtol` is "tolerance of `y` (`rtol`)". For people only: documents and events keep the fields
//! themselves. Knows how parameters of steps are named; a name that it does not know has no words, and is shown as it is.

use super::arguments::Arguments;

/// What a field of a key means, without an article; none if the field has no plainer name.
pub fn words(field: &str) -> Option<String> {
    words_of(field, &Arguments::default())
}

/// The same for a field of a kernel's step: arguments of launches go by their names, as far as they have some.
pub fn words_of(field: &str, arguments: &Arguments) -> Option<String> {
    if let Some(input) = field.strip_prefix("inputs.") {
        return Some(input_words(input));
    }
    let words = match field.strip_prefix("params.") {
        Some(param) => param_words(param, arguments)?,
        None if field == "implementation" => "implementation in kforge".into(),
        None => return None,
    };
    Some(words)
}

/// Words for the name of an input.
fn input_words(name: &str) -> String {
    match name.split_once(':').unwrap_or((name, "")) {
        ("file", path) => format!("file `{path}`"),
        ("tree", "source") => "source".into(),
        ("tree", "reference") => "source of the reference".into(),
        ("tree", "inputs") => "files with inputs".into(),
        ("toolchain", _) => "toolchain".into(),
        ("expected", _) => "expected values".into(),
        ("binary" | "calibration" | "observation" | "inspection", "") => name.into(),
        _ => format!("input `{name}`"),
    }
}

/// Words for a parameter, given its path without `params.`.
fn param_words(path: &str, arguments: &Arguments) -> Option<String> {
    let mut parts = path.split('.');
    let (name, at) = indexed(parts.next()?);
    let rest: Vec<&str> = parts.collect();
    let words = match (name, rest.as_slice()) {
        ("launches", rest) => launch_words(at?, rest, arguments),
        ("problem", [part, rest @ ..]) => match (indexed(part).0, rest) {
            ("dims", [dim, ..]) => format!("dim `{dim}`"),
            ("params", _) => "param of the operator".into(),
            ("reference", _) => "reference".into(),
            ("tensors", _) => "tensors of the operator".into(),
            _ => return None,
        },
        ("cases", [part, rest @ ..]) if *part == "tolerance" => tolerance_words(rest)?,
        ("tolerance" | "count_beyond", rest) => tolerance_words(rest)?,
        ("defines", [name, ..]) => format!("macro `{name}`"),
        ("arch", []) => "architecture".into(),
        ("compiler", _) => "compiler".into(),
        ("std", []) => "C++ standard".into(),
        ("include", _) => "include folders".into(),
        ("flags", _) => "compiler flags".into(),
        ("entries", _) => "entries of its launches".into(),
        ("workspaces", _) => "workspaces".into(),
        ("trial" | "trials", _) => "trials".into(),
        ("candidates", _) => "list of variants".into(),
        ("pinned", _) => "pin in kforge.lock".into(),
        ("margin", []) => "margin of the selection".into(),
        ("signature", _) => "signature of the method".into(),
        _ => return None,
    };
    Some(words)
}

/// Words for a part of a launch, counted from 1 as in other messages.
fn launch_words(at_launch: usize, path: &[&str], arguments: &Arguments) -> String {
    let launch = at_launch + 1;
    match path.get(1).map(|part| indexed(part)) {
        Some((part @ ("grid" | "block" | "cluster"), _)) => format!("{part} of launch {launch}"),
        Some(("shared", _)) => format!("shared memory of launch {launch}"),
        Some(("args", Some(at))) => match arguments.name(at_launch, at) {
            Some(name) => format!("argument `{name}` of launch {launch}"),
            None => format!("argument {} of launch {launch}", at + 1),
        },
        _ => format!("launch {launch}"),
    }
}

/// Words for the tolerance of an output.
fn tolerance_words(path: &[&str]) -> Option<String> {
    match path {
        [] => None,
        [output] => Some(format!("tolerance of `{output}`")),
        [output, bound, ..] => Some(format!("tolerance of `{output}` (`{bound}`)")),
    }
}

/// A name and its index: `args[4]` is `args` and 4.
fn indexed(part: &str) -> (&str, Option<usize>) {
    let Some((name, index)) = part.strip_suffix(']').and_then(|part| part.split_once('[')) else { return (part, None) };
    (name, index.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_keys_have_the_words_of_the_manifest() {
        for (field, said) in [
            ("params.launches[0].kernel.args[4].scalar.value.float", "argument 5 of launch 1"),
            ("params.launches[1].kernel.grid[0]", "grid of launch 2"),
            ("params.launches[0].kernel.shared", "shared memory of launch 1"),
            ("params.launches[0].memset.value", "launch 1"),
            ("params.problem.dims.cols", "dim `cols`"),
            ("params.problem.params[0].value.float", "param of the operator"),
            ("params.problem.reference.builtin.name", "reference"),
            ("params.cases[0].tolerance.y.rtol", "tolerance of `y` (`rtol`)"),
            ("params.tolerance.y", "tolerance of `y`"),
            ("params.candidates[8].identity", "list of variants"),
            ("params.defines.BLOCK", "macro `BLOCK`"),
            ("params.std", "C++ standard"),
            ("params.flags[0]", "compiler flags"),
            ("inputs.file:src/k.cu", "file `src/k.cu`"),
            ("inputs.tree:source", "source"),
            ("inputs.toolchain:cxx", "toolchain"),
            ("inputs.calibration", "calibration"),
            ("inputs.times:3", "input `times:3`"),
            ("implementation", "implementation in kforge"),
        ] {
            assert_eq!(words(field).as_deref(), Some(said), "{field}");
        }
        let arguments = Arguments::named(&["x", "y", "rows * 2"]);
        for (field, said) in [
            ("params.launches[0].kernel.args[2].scalar.value.int", "argument `rows * 2` of launch 1"),
            ("params.launches[0].kernel.args[0].pointer.offset", "argument `x` of launch 1"),
            ("params.launches[0].kernel.args[3].scalar.value.int", "argument 4 of launch 1"),
            ("params.launches[1].kernel.args[0].pointer.offset", "argument 1 of launch 2"),
        ] {
            assert_eq!(words_of(field, &arguments).as_deref(), Some(said), "{field}");
        }
        for unknown in ["version", "params.of.a.later.kforge", "params.launches", "params.tolerance", "params.problem"]
        {
            assert_eq!(words(unknown), None, "{unknown}");
        }
    }
}
