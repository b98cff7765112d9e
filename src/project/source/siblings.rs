//! Kernels that share a file: a source without the kernels that nothing in it needs. Knows which declarations are kernels and who names them; leaves host code alone.
//!
//! A compiler makes code of every kernel of a file that is no template, whoever asks. Each kernel of a manifest would then have all of them in its binary: each
//! compilation would take as long as all together, and an edit of one would change the binaries of the others, whose results and recorded evidence would count no
//! more. So the other kernels are blanked before a source is compiled. This cannot change what the rest means:
//!
//! | decision | reason |
//! |---|---|
//! | only kernels are left out, with their declarations | no device code calls one, except by its name |
//! | a kernel stays if an entry names it, or anything else that stays, through macros too | a name that nobody uses takes part in no lookup |
//! | names count wherever they occur | too much costs time only |
//! | what a macro makes is left out if it makes nothing but such kernels | the rest has no text of its own |
//! | lines stay | `__LINE__` and messages mean the source that the user sees |
//! | a source that does not compile so is compiled as it is written | a macro may make a name of two parts |

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::part::{Part, What};
use super::reach::COUNTER;
use super::tokens::words;
use super::{Given, Reduced, SourceTree, Sources};

/// Whether files may hold several kernels. Quick, for the many sources that hold one.
fn may_hold_several(tree: &SourceTree<'_>) -> bool {
    let count = |text: &String| text.matches("__global__").take(2).count();
    let in_macro = |text: &String| text.contains("define");
    let found: Vec<&String> = tree.files.values().filter(|text| count(text) > 0).collect();
    found.iter().map(|text| count(text)).sum::<usize>() > 1 || found.iter().any(|text| in_macro(text))
}

/// The source without the kernels that neither these entries nor anything else in it names, with the macros and flags that its compiler is given; none if it has
/// no such kernel.
pub fn without_other_kernels(tree: SourceTree<'_>, entries: &[String], given: Given<'_>) -> Option<Reduced> {
    if !may_hold_several(&tree) {
        return None;
    }
    let sources = Sources::read_given(tree, given);
    if sources.unfinished().is_some() {
        return None;
    }
    let kept = sources.kept_beside(entries.iter().map(String::as_str).chain(given.texts()));
    let (files, left_out) = sources.leaving(&kept, &[]);
    (!left_out.is_empty()).then(|| Reduced { files, left_out, ..Reduced::default() })
}

impl Sources<'_> {
    /// All declarations except kernels that nothing names.
    fn kept_beside<'t>(&self, given: impl IntoIterator<Item = &'t str>) -> BTreeSet<(usize, usize)> {
        let is_kernel = |part: &Part| part.surely_kernel && part.what == What::Function && !part.names.is_empty();
        let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut open: VecDeque<String> = given.into_iter().flat_map(words).collect();
        let mut kept: BTreeSet<usize> = BTreeSet::new();
        for (index, group) in self.groups.iter().enumerate() {
            if group.parts.is_empty() || group.stays || !group.parts.iter().all(is_kernel) {
                kept.insert(index);
                open.extend(group.parts.iter().flat_map(|part| part.uses.iter().cloned()));
                continue;
            }
            for name in group.parts.iter().flat_map(|part| &part.names) {
                by_name.entry(name).or_default().push(index);
            }
        }
        for (group, _) in self.counters() {
            by_name.entry(COUNTER).or_default().push(group);
        }
        for file in self.files.iter().filter(|file| file.fragment) {
            open.extend(file.tokens.iter().filter(|t| t.is_word()).map(|t| t.text.clone()));
        }
        let mut seen: BTreeSet<String> = BTreeSet::new();
        while let Some(name) = open.pop_front() {
            if !seen.insert(name.clone()) {
                continue;
            }
            open.extend(self.macros.words(&name));
            for index in by_name.get(name.as_str()).into_iter().flatten() {
                if kept.insert(*index) {
                    open.extend(self.groups[*index].parts.iter().flat_map(|part| part.uses.iter().cloned()));
                }
            }
        }
        kept.into_iter().flat_map(|index| (0..self.groups[index].parts.len()).map(move |part| (index, part))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(files: &[(&str, &str)]) -> BTreeMap<String, String> {
        files.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect()
    }

    /// The lines of the main file that are blanked, and what is left out.
    fn gone(all: &[(&str, &str)], entry: &str) -> (Vec<String>, Vec<String>) {
        let files = files(all);
        let tree = SourceTree { files: &files, main: all[0].0, include: &[] };
        let Some(alone) = without_other_kernels(tree, &[entry.to_string()], Given::default()) else {
            return (vec![], vec![]);
        };
        let text = alone.files.get(all[0].0).map_or(all[0].1, String::as_str);
        assert_eq!(text.lines().count(), all[0].1.lines().count(), "lines stay: {text}");
        let blank = all[0].1.lines().zip(text.lines()).filter(|(_, now)| now.trim().is_empty());
        let blank = blank.filter(|(line, _)| !line.trim().is_empty()).map(|(line, _)| line.to_string()).collect();
        (blank, alone.left_out.into_iter().map(|part| part.name).collect())
    }

    #[test]
    fn other_kernels_are_left_out_and_nothing_else() {
        let text = "struct Unused { int n; };\n__constant__ float scale[4];\nfloat host(float x) { return x; }\n\
            __device__ float twice(float x) { return 2 * x; }\n__global__ void a(float *x) { x[0] = twice(x[0]); }\n\
            extern \"C\" __global__ void b(float *x) { x[0] = twice(x[1]); }\nnamespace ops {\n__global__ void c(float *x) { x[0] = scale[0]; }\n}\n";
        let (blank, names) = gone(&[("k.cu", text)], "a");
        assert_eq!(names, ["b", "c"]);
        assert!(blank.iter().all(|line| line.contains("void b(") || line.contains("void c(")), "{blank:?}");
        assert_eq!(gone(&[("k.cu", text)], "ops::c").1, ["a", "b"]);
        let one = "__global__ void a(float *x) { }\n";
        assert!(gone(&[("k.cu", one)], "a").1.is_empty(), "an only kernel");
        assert!(
            gone(&[("k.cu", &text.replace("return x;", "b(&x); c(&x);"))], "a").1.is_empty(),
            "named by a launcher"
        );
    }

    #[test]
    fn kernels_that_a_macro_a_table_or_a_kernel_names_stay() {
        let text = "#define RUN(x) helper(x)\n__global__ void helper(float *x) { }\n__global__ void a(float *x) { RUN(x); }\n__global__ void b(float *x) { }\n";
        assert_eq!(gone(&[("k.cu", text)], "a").1, ["b"]);
        assert_eq!(gone(&[("k.cu", text)], "b").1, ["helper", "a"], "only `a` names the helper");
        let table = format!("{text}__device__ void *table[] = {{ (void *)b }};\n");
        assert!(gone(&[("k.cu", &table)], "a").1.is_empty());
        let overloads =
            "__global__ void a(float *x) { }\n__global__ void a(int *x) { }\n__global__ void b(int *x) { }\n";
        assert_eq!(gone(&[("k.cu", overloads)], "a(int *)").1, ["b"], "a name's declarations stay together");
    }

    #[test]
    fn kernels_of_macros_and_of_headers_are_left_out_too() {
        let text = "#include \"more.cuh\"\n#define UNARY(T, NAME, F) extern \"C\" __global__ void NAME(const T *x, T *y) { y[0] = F; }\n\
            UNARY(float, relu, x[0] > 0 ? x[0] : 0)\nUNARY(float, half_of, x[0] / 2)\n#define BOTH(NAME) __global__ void NAME(int *x) { } void run_##NAME(int *x) { NAME(x); }\n\
            BOTH(first)\nBOTH(second)\n";
        let (_, names) = gone(&[("k.cu", text), ("more.cuh", "__global__ void shared_one(int *x) { }\n")], "relu");
        assert_eq!(names, ["half_of", "shared_one"], "those of a macro that makes host code, too, stay");
    }

    #[test]
    fn conditions_around_and_inside_a_kernel_stay() {
        let text = "__global__ void a(int *x) { }\n#ifdef WIDE\n__global__ void b(int *x) {\n#if N > 2\n#define M 3\n  x[0] = 1;\n#endif\n}\n#endif\n";
        let files = files(&[("k.cu", text)]);
        let tree = SourceTree { files: &files, main: "k.cu", include: &[] };
        let out = without_other_kernels(tree, &["a".into()], Given::default()).unwrap();
        let directives: Vec<&str> = out.files["k.cu"].lines().filter(|line| line.starts_with('#')).collect();
        assert_eq!(directives, ["#ifdef WIDE", "#if N > 2", "#define M 3", "#endif", "#endif"]);
        assert!(!out.files["k.cu"].contains("x[0]"), "{}", out.files["k.cu"]);
    }
}
