//! Reads what kernels in Triton state, and refuses the keys that make no sense for a language. Kinds of values were checked before.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fields::SPECIALIZE;
use super::read::{Reader, integer, sub};
use crate::model::Text;
use crate::model::expr::{Expr, Want};
use crate::model::kernel::Language;
use crate::model::package::Inheritable;
use crate::model::triton::{ConstDecl, OptionDecls, RELEASES, Specialize, TritonDecl};

/// What a dim must be divisible by to be listed in `specialize`.
const DIVISOR: i64 = 16;

impl Reader<'_> {
    /// The language of a kernel. Refuses the keys that the language does not have.
    pub(super) fn language(&mut self, name: &Text, table: &DeTable<'_>) -> Language {
        let stated = self.text(table, "language").map(|language| language.value);
        let of = |language: &Language| stated.as_ref() == Some(&language.to_string());
        let language = [Language::Triton, Language::Torch].into_iter().find(of).unwrap_or(Language::Cuda);
        let of_one = [("specialize", Language::Triton), ("call", Language::Torch), ("policy", Language::Torch)];
        for (key, only) in of_one.into_iter().filter(|(_, only)| *only != language) {
            if let Some((at, _)) = table.get_key_value(key) {
                let message = format!("kernel `{name}` is not in {} and states `{key}`", only.title());
                let expected = format!("`{key}` only with `language = \"{only}\"`");
                self.wrong("manifest.conflict", message, at.span(), &expected);
            }
        }
        self.of_language(name, table, language);
        language
    }

    /// Refuses the keys of a kernel or of a template's declaration that its language does not have.
    pub(super) fn of_language(&mut self, name: &Text, table: &DeTable<'_>, language: Language) {
        match language {
            Language::Cuda => {}
            Language::Torch => self.only_torch(name, table),
            Language::Triton => self.only_triton(name, table),
        }
    }

    /// Refuses the keys that kernels in Triton do not have.
    fn only_triton(&mut self, name: &Text, table: &DeTable<'_>) {
        let never = [
            ("compiler", "no `compiler`: Triton is the compiler"),
            ("std", "no `std`, which is of C++"),
            ("include", "no `include`: Python files of the source's folder and below can be imported"),
            ("flags", "no `flags`: `options` of a launch holds the compiler's options"),
            ("defines", "no `defines`: `constexprs` of a launch holds constants"),
            ("constants", "no `constants`, which are of CUDA C++"),
            ("host", "`source` and `launch`: a kernel in Triton has no launcher of its own"),
        ];
        for (key, expected) in never {
            if let Some((at, _)) = table.get_key_value(key) {
                let message = format!("kernel `{name}` is in Triton and states `{key}`");
                self.wrong("manifest.conflict", message, at.span(), expected);
            }
        }
        if let Some((at, _)) = sub(table, "verify").and_then(|verify| verify.get_key_value("sanitize")) {
            let message = format!("kernel `{name}` is in Triton and states `sanitize`");
            self.wrong("manifest.conflict", message, at.span(), "no `sanitize`: its binaries have no line tables");
        }
        for (method, value) in self.named(table, "methods") {
            let off = value.get_ref().as_table().and_then(|inner| sub(inner, "off"));
            if let Some((at, _)) = off.and_then(|off| off.get_key_value("flags")) {
                let message = format!("method `{method}` of a kernel in Triton states `flags`");
                self.wrong("manifest.conflict", message, at.span(), "values of tunables, or `source`");
            }
        }
    }

    /// Which arguments the compilations of a kernel depend on.
    pub(super) fn specialize(&mut self, table: &DeTable<'_>, language: Language) -> Specialize {
        let Some(value) = table.get("specialize").filter(|_| language == Language::Triton) else {
            return Specialize::Jit;
        };
        let Some(inner) = value.get_ref().as_table() else {
            let word = value.get_ref().as_str();
            return if word == Some(SPECIALIZE[1]) { Specialize::None } else { Specialize::Jit };
        };
        let mut names = vec![];
        for (name, value) in self.keys(inner) {
            if value.get_ref().is_integer() && integer(value.get_ref()) != Some(DIVISOR) {
                let message = format!("`{name}` cannot be specialised so");
                self.wrong("manifest.value", message, value.span(), "16: the dim is a multiple of it at every shape");
            }
            names.push(name);
        }
        Specialize::Only(names)
    }

    /// The conditions that `specialize` adds to those of the kernel.
    pub(super) fn specialized(&mut self, specialize: &Specialize) -> Vec<Expr> {
        let Specialize::Only(names) = specialize else { return vec![] };
        let conditions = names.iter().map(|name| {
            let place = name.place.clone();
            Expr::parse(&format!("{name} % {DIVISOR} == 0"), Want::Bool, place)
        });
        conditions.collect::<Vec<_>>().into_iter().filter_map(|parsed| self.keep(parsed)).collect()
    }

    /// What a launch states in place of a block and shared memory, in Triton. Refuses the keys of the other languages.
    pub(super) fn triton_launch(
        &mut self,
        table: &DeTable<'_>,
        language: Language,
        uses: &mut Vec<Text>,
    ) -> Option<Box<TritonDecl>> {
        let never: &[(&str, &str)] = match language {
            // The launches of a kernel in PyTorch have been refused as a whole.
            Language::Torch => &[],
            Language::Cuda => &[
                ("constexprs", "`constexprs` only with `language = \"triton\"`"),
                ("options", "`options` only with `language = \"triton\"`"),
            ],
            Language::Triton => &[
                ("block", "no `block`: a program has 32 threads for each of `num_warps` in `options`"),
                ("shared", "no `shared`: the compiler knows the shared memory that a program needs"),
                ("cluster", "no `cluster`: `num_ctas` in `options` makes clusters"),
            ],
        };
        for (key, expected) in never {
            if let Some((at, _)) = table.get_key_value(*key) {
                let message = format!("a launch in {language} has no `{key}`");
                self.wrong("manifest.conflict", message, at.span(), expected);
            }
        }
        if language != Language::Triton {
            return None;
        }
        let mut constexprs = vec![];
        for (name, value) in self.named(table, "constexprs") {
            if let Some(decl) = self.constant(value, uses) {
                constexprs.push((name, decl));
            }
        }
        let options = sub(table, "options").map(|options| OptionDecls {
            num_warps: self.expr_of(options, "num_warps", Want::Int),
            num_stages: self.expr_of(options, "num_stages", Want::Int),
            num_ctas: self.expr_of(options, "num_ctas", Want::Int),
            maxnreg: self.expr_of(options, "maxnreg", Want::Int),
            enable_fp_fusion: self.expr_of(options, "enable_fp_fusion", Want::Bool),
        });
        Some(Box::new(TritonDecl { constexprs, options: options.unwrap_or_default() }))
    }

    fn constant(&mut self, value: &Spanned<DeValue<'_>>, uses: &mut Vec<Text>) -> Option<ConstDecl> {
        let Some(table) = value.get_ref().as_table() else {
            return self.expr(value, Want::Any).map(ConstDecl::Value);
        };
        match (table.contains_key("next_pow2"), self.text(table, "dtype")) {
            (true, None) => self.expr_of(table, "next_pow2", Want::Int).map(ConstDecl::NextPow2),
            (false, Some(dtype)) => {
                let place = dtype.place.clone();
                Some(ConstDecl::Dtype(self.type_use(dtype, uses), place))
            }
            _ => {
                let message = "a constant states not exactly one of its forms".to_string();
                self.wrong("manifest.value", message, value.span(), "an expression, `next_pow2` or `dtype`");
                None
            }
        }
    }

    /// `toolchain.triton`.
    pub(super) fn inheritable_triton(&mut self, table: &DeTable<'_>) -> Option<Inheritable<Text>> {
        if let Some((key, _)) = table.get_key_value("workspace") {
            if table.contains_key("triton") {
                let message = "`toolchain` is inherited from the workspace and also states `triton`".to_string();
                self.wrong("manifest.conflict", message, key.span(), "one of them");
            }
            return None;
        }
        let value = table.get("triton")?;
        if let Some(inherited) = self.only_inherited("toolchain.triton", value) {
            return Some(inherited);
        }
        let release = self.string(value)?;
        if !RELEASES.contains(&release.as_str()) {
            let error = release.place.error("manifest.version", format!("kforge does not know Triton `{release}`"));
            let error = error.expected(format!("one of {}", RELEASES.join(", ")));
            self.found.push(
                error.hint("each release of Triton launches kernels in its own way; later ones need a later kforge"),
            );
            return None;
        }
        Some(Inheritable::Value(release))
    }
}
