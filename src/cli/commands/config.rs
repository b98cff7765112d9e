//! `kforge config list` and `get`: the effective settings and the source of each.

use super::CommandResult;
use crate::cli::Context;
use crate::cli::args::ConfigCommand;
use crate::cli::exit::Exit;
use kforge_foundation::base::Diagnostic;

/// Runs the command.
pub fn run(context: &Context, command: &ConfigCommand) -> CommandResult {
    let key = match command {
        ConfigCommand::List => &None,
        ConfigCommand::Get { key } => key,
    };
    let known = || context.session.settings.all().map(|(k, _)| k.name);
    if let Some(key) = key
        && !known().any(|name| name == key || name.starts_with(&format!("{key}.")))
        && key != "alias"
        && !key.starts_with("alias.")
    {
        let unknown = Diagnostic::error("config.unknown-key", format!("unknown setting `{key}`"));
        // `jobs` means `build.jobs`.
        let unknown = match known().find(|name| name.ends_with(&format!(".{key}"))) {
            Some(name) => unknown.hint(format!("did you mean `{name}`?")),
            None => unknown.suggest(key, known()),
        };
        context.console.diagnostic(&unknown.hint("`kforge config list` shows every setting"));
        return Err(Exit::NothingSelected.into());
    }
    let wanted = |name: &str| key.as_ref().is_none_or(|k| name == k || name.starts_with(&format!("{k}.")));
    let mut lines: Vec<(String, String)> = context
        .session
        .settings
        .all()
        .filter(|(k, _)| wanted(k.name))
        .map(|(k, value)| {
            let text = if value.text.is_empty() { "(not set)" } else { &value.text };
            (format!("{} = {text}", k.name), value.origin.to_string())
        })
        .collect();
    for (name, words) in context.session.settings.alias.iter().filter(|(name, _)| wanted(&format!("alias.{name}"))) {
        lines.push((format!("alias.{name} = {}", words.join(" ")), "configuration file".into()));
    }
    let width = lines.iter().map(|(text, _)| text.chars().count()).max().unwrap_or(0);
    let dim = anstyle::Style::new().dimmed();
    for (text, origin) in lines {
        context.console.out(&format!("{text:width$}  {dim}# {origin}{dim:#}\n"));
    }
    Ok(Exit::Done)
}
