//! Reads what kernels in PyTorch state, and refuses the keys that make no sense for them. Kinds of values were checked before; `validate` checks what names mean.

use toml::de::DeTable;

use super::read::{Reader, sub};
use crate::model::kernel::TorchKernel;
use crate::model::policy::OWN_SHARE;
use crate::model::{Library, Policy, Text};

impl Reader<'_> {
    /// What is called of a kernel in PyTorch, and its file.
    pub(super) fn candidate(&mut self, table: &DeTable<'_>) -> Option<(TorchKernel, Text)> {
        let stated = self.text(table, "source")?;
        let (file, function) = self.function(&stated, &[".py"])?;
        let call = sub(table, "call").map(|call| self.torch_call(call));
        let policy = sub(table, "policy").map(|policy| self.policy(policy));
        Some((TorchKernel { function, call, policy }, Text { value: file, place: stated.place }))
    }

    /// What it may call.
    fn policy(&mut self, table: &DeTable<'_>) -> Policy {
        // Other words have been reported.
        let libraries = self.texts(table, "libraries");
        let libraries = libraries.iter().filter_map(|name| Library::of(&name.value)).collect();
        let mut own_share = OWN_SHARE;
        if let Some((share, span)) = self.number(table, "own_share") {
            if (0.0..=1.0).contains(&share) {
                own_share = share;
            } else {
                self.wrong("manifest.policy", "`own_share` is not a share".into(), span, "a number from 0 to 1");
            }
        }
        Policy { libraries: table.contains_key("libraries").then_some(libraries), own_share }
    }

    /// Refuses the keys that kernels in PyTorch do not have.
    pub(super) fn only_torch(&mut self, name: &Text, table: &DeTable<'_>) {
        let never = [
            ("launch", "no `launch`: `source` names what is called, as `file.py::Name`"),
            ("workspace", "no `workspace`: the module allocates for itself"),
            ("methods", "no `methods`: kforge does not look into what PyTorch launches"),
            ("compiler", "no `compiler`: nothing is compiled ahead"),
            ("std", "no `std`, which is of C++"),
            ("include", "no `include`: Python files of the source's folder and below can be imported"),
            ("flags", "no `flags`: nothing is compiled ahead"),
            ("defines", "no `defines`: `call.constants` sets constants at the top of the file"),
            (
                "constants",
                "no `constants`, which are of CUDA C++: `call.constants` sets constants at the top of the file",
            ),
            ("host", "`source`, as `file.py::Name`"),
            ("generate", "your own `source`: templates and agents write CUDA C++ and Triton"),
        ];
        for (key, expected) in never {
            if let Some((at, _)) = table.get_key_value(key) {
                let message = format!("kernel `{name}` is in PyTorch and states `{key}`");
                self.wrong("manifest.conflict", message, at.span(), expected);
            }
        }
        if let Some((at, _)) = sub(table, "verify").and_then(|verify| verify.get_key_value("sanitize")) {
            let message = format!("kernel `{name}` is in PyTorch and states `sanitize`");
            self.wrong("manifest.conflict", message, at.span(), "no `sanitize`: kforge does not launch it itself");
        }
        if let Some((at, _)) = sub(table, "tune").and_then(|tune| tune.get_key_value("strategy")) {
            let message = format!("kernel `{name}` is in PyTorch and states `tune.strategy`");
            self.wrong("manifest.conflict", message, at.span(), "no `strategy`: all its variants are tried");
        }
    }
}
