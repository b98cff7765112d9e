//! Solutions, and which of them kforge can take: one that kforge exported is a kernel again, and one in Python that returns its outputs is a baseline.

use super::definition::Definition;
use super::json::{Field, Json, Malformed};

/// The key under which kforge keeps what the form has no place for: the tables of a kernel, as the text of a manifest. Other programs ignore it.
pub const KERNEL: &str = "kforge";

/// A solution.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// Its name, unique in the dataset.
    pub name: String,
    /// What it solves.
    pub definition: String,
    /// Who wrote it.
    pub author: String,
    /// What it is written in.
    pub languages: Vec<Language>,
    /// `file::function`.
    pub entry_point: String,
    /// What it needs.
    pub dependencies: Vec<String>,
    /// Whether its outputs are its last arguments.
    pub writes_to_arguments: bool,
    /// Its files by path.
    pub sources: Vec<(String, String)>,
    /// The tables of a kernel, if kforge exported it.
    pub kernel: Option<String>,
}

/// What a solution is written in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Language {
    /// Python, PyTorch included.
    Python,
    /// Triton, launched from Python.
    Triton,
    /// CUDA C++, launched by host code.
    Cuda,
    /// C++ for the host.
    Cpp,
    /// Another one, by its word.
    Other(String),
}

impl Language {
    fn of(word: &str) -> Self {
        match word {
            "python" | "pytorch" => Language::Python,
            "triton" => Language::Triton,
            "cuda" | "cuda_cpp" => Language::Cuda,
            "cpp" => Language::Cpp,
            other => Language::Other(other.to_string()),
        }
    }

    /// The word for messages.
    pub fn word(&self) -> &str {
        match self {
            Language::Python => "Python",
            Language::Triton => "Triton",
            Language::Cuda => "CUDA C++",
            Language::Cpp => "C++",
            Language::Other(word) => word,
        }
    }
}

impl Solution {
    /// Reads a solution.
    ///
    /// # Errors
    /// A field is missing, or is not what it must be.
    pub fn read(text: &str) -> Result<Self, Malformed> {
        let json = Json::read(text)?;
        let root = Field::root(&json);
        let of = |key: &str| -> Result<String, Malformed> { Ok(root.need(key)?.text()?.to_string()) };
        let spec = root.need("spec")?;
        let texts = |field: Option<Field<'_>>| -> Result<Vec<String>, Malformed> {
            let list = field.map(|field| field.list()).transpose()?.unwrap_or_default();
            list.iter().map(|one| one.text().map(String::from)).collect()
        };
        // FlashInfer-Trace names one, SOL-ExecBench a list.
        let languages = match spec.get("languages")? {
            Some(field) => texts(Some(field))?,
            None => vec![spec.need("language")?.text()?.to_string()],
        };
        let entry = spec.need("entry_point")?;
        let entry_point = entry.text()?.to_string();
        let mut sources: Vec<(String, String)> = vec![];
        let listed = root.need("sources")?;
        for source in listed.list()? {
            let path = source.need("path")?;
            let name = path.text()?.to_string();
            if !is_inside(&name) {
                return Err(path.wrong(format!("is `{name}`, which is no path inside of the solution")));
            }
            if sources.iter().any(|(other, _)| *other == name) {
                return Err(path.wrong(format!("is `{name}` a second time")));
            }
            sources.push((name, source.need("content")?.text()?.to_string()));
        }
        match entry_point.split_once("::") {
            Some((file, function)) if !function.is_empty() && !function.contains("::") => {
                if !sources.iter().any(|(name, _)| name == file) {
                    return Err(entry.wrong(format!("names `{file}`, which is none of the sources")));
                }
            }
            _ => return Err(entry.wrong(format!("is `{entry_point}`, expected `file::function`"))),
        }
        let kernel = match root.get(KERNEL)? {
            Some(own) => Some(own.need("kernel")?.text()?.to_string()),
            None => None,
        };
        Ok(Solution {
            name: of("name")?,
            definition: of("definition")?,
            author: of("author")?,
            languages: languages.iter().map(|word| Language::of(word)).collect(),
            entry_point,
            dependencies: texts(spec.get("dependencies")?)?,
            writes_to_arguments: match spec.get("destination_passing_style")? {
                Some(field) => field.bool()?,
                None => true,
            },
            sources,
            kernel,
        })
    }

    /// The file and the function of the entry point.
    pub fn entry(&self) -> (&str, &str) {
        self.entry_point.split_once("::").unwrap_or((&self.entry_point, ""))
    }

    /// Why it cannot be a baseline; none if it can. `parameters` are those of its entry point, in order; none if they are not known.
    pub(super) fn is_no_baseline(&self, definition: &Definition, parameters: Option<&[String]>) -> Option<String> {
        let host = |language: &&Language| !matches!(language, Language::Python | Language::Triton);
        if let Some(language) = self.languages.iter().find(host) {
            let word = language.word();
            return Some(match language {
                Language::Cuda | Language::Cpp => {
                    format!("is {word} with host code that launches it: `kforge import cuda` reads its kernels")
                }
                _ => format!("is in {word}, which kforge does not run"),
            });
        }
        if self.writes_to_arguments {
            return Some("takes its outputs as arguments, and a baseline returns them".into());
        }
        if let Some(other) = self.dependencies.iter().find(|name| !["torch", "triton"].contains(&name.as_str())) {
            return Some(format!("needs `{other}`, and a baseline may use PyTorch and Triton only"));
        }
        let Some(parameters) = parameters else {
            return Some(format!("defines no function `{}` whose arguments have names", self.entry().1));
        };
        let wanted: Vec<&str> = definition.inputs.iter().map(|(name, _)| name.as_str()).collect();
        (parameters != wanted).then(|| {
            let list = |names: &[&str]| names.join(", ");
            let own: Vec<&str> = parameters.iter().map(String::as_str).collect();
            format!("takes ({}), and a baseline takes the inputs by name: ({})", list(&own), list(&wanted))
        })
    }
}

/// Whether a path leads to a place below its folder.
fn is_inside(path: &str) -> bool {
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains(['\\', ':', '\0']);
    path.split('/').all(is_plain)
}

/// The folder of a solution's files in a package.
pub fn solution_folder(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' };
    let plain: String = name.chars().map(plain).collect();
    format!("solutions/{}", plain.trim_start_matches('.'))
}
