//! Writes sources that no file of a package holds to a place where people can read them: those from templates and from agents. Nothing reads the copies.

use std::io;
use std::path::{Path, PathBuf};

use super::build::Packages;
use super::rounds::Recorded;
use kforge_foundation::base::files::write_if_changed;
use kforge_types::model::Kernel;

/// Writes every source that an agent wrote to `generated/PACKAGE/KERNEL/r1.cu`, in Triton `r1.py`, by target and types if there are several.
pub(super) fn show_written(target: &Path, recorded: &[Recorded]) -> io::Result<()> {
    for recorded in recorded {
        let seat = &recorded.seat;
        let folder =
            target.join("generated").join(&seat.package).join(&seat.kernel).join(&seat.target).join(&seat.types);
        let sources =
            recorded.answers.iter().filter_map(|a| Some((&a.question, a.proposal.as_ref()?.source.as_ref()?)));
        let ending = recorded.language.ending();
        for (question, source) in sources {
            std::fs::create_dir_all(&folder)?;
            let name = match question.attempt {
                0 => format!("r{}.{ending}", question.round),
                repair => format!("r{}.{repair}.{ending}", question.round),
            };
            write_if_changed(&folder.join(name), source.as_bytes())?;
        }
    }
    Ok(())
}

/// Writes every source that a template generated to `generated/PACKAGE/KERNEL.cu`, in Triton `KERNEL.py`, in the output folder.
pub(super) fn show_generated(target: &Path, packages: &Packages) -> io::Result<()> {
    for package in packages.all() {
        for kernel in &package.kernels {
            let Some(made) = kernel.made() else { continue };
            show(target, &package.name, kernel, &made.source)?;
        }
    }
    Ok(())
}

/// Writes one generated source, and returns its path.
pub(super) fn show(target: &Path, package: &str, kernel: &Kernel, source: &str) -> io::Result<PathBuf> {
    let folder = target.join("generated").join(package);
    let path = folder.join(format!("{}.{}", kernel.name, kernel.language.ending()));
    std::fs::create_dir_all(folder)?;
    write_if_changed(&path, source.as_bytes())?;
    Ok(path)
}
