//! `kforge evidence`: exports evidence to bundles, imports bundles, lists records, signs bundles and checks signatures.

use super::{CommandResult, passphrase};
use crate::cli::args::{
    EvidenceCommand, EvidenceExport, EvidenceList, EvidenceSign, EvidenceTrust, EvidenceVerify, KeyFor, MessageFormat,
};
use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::words::bytes;
use kforge_foundation::base::count;
use kforge_ops::Error;
use kforge_ops::evidence::sign::{self, SignWith};
use kforge_ops::evidence::{self, ExportRequest, ListRequest, Listed};
use kforge_pipeline::release::evidence_list;
use kforge_pipeline::release::signature::Purpose;
use kforge_pipeline::release::trust::TrustSource;
use kforge_types::record::Standing;
use std::path::Path;

/// Runs the command.
pub fn run(context: &Context, command: &EvidenceCommand) -> CommandResult {
    match command {
        EvidenceCommand::Export(args) => export(context, args),
        EvidenceCommand::Import(args) => {
            evidence::import(&context.session, &args.files)?;
            Ok(Exit::Done)
        }
        EvidenceCommand::List(args) => list(context, args),
        EvidenceCommand::Sign(args) => sign_files(context, args),
        EvidenceCommand::Verify(args) => verify(context, args),
        EvidenceCommand::Trust(args) => trust(context, args),
    }
}

fn sign_files(context: &Context, args: &EvidenceSign) -> CommandResult {
    let with = match (&args.key, &args.once, &args.principal) {
        (Some(key), ..) => SignWith::Key(key.clone()),
        (None, Some(public), Some(principal)) => {
            SignWith::Once { public: public.clone(), principal: principal.clone() }
        }
        // The options require one or the other.
        (None, ..) => return Err(Exit::Usage.into()),
    };
    for signed in sign::sign(&context.session, &args.files, &with, args.replace, &passphrase)? {
        let converted = if signed.converted { ", after converting it to the current format" } else { "" };
        let text = format!("`{}` with {}{converted}", signed.path.display(), signed.fingerprint);
        context.console.status("Signed", &text);
    }
    if let Some(public) = &args.once {
        context.console.status("Discarded", &format!("the key; its public half is in `{}`", public.display()));
    }
    Ok(Exit::Done)
}

fn verify(context: &Context, args: &EvidenceVerify) -> CommandResult {
    let found = sign::verify(&context.session, &args.files, args.base.as_deref())?;
    for view in &found {
        let line = match args.message_format {
            MessageFormat::Json => serde_json::to_string(view).map_err(Error::from)?,
            MessageFormat::Human => view.text(),
        };
        context.console.out(&format!("{line}\n"));
    }
    match found.iter().all(|view| view.standing == Standing::Signed) {
        true => Ok(Exit::Done),
        false => Ok(Exit::NoEvidence),
    }
}

fn trust(context: &Context, args: &EvidenceTrust) -> CommandResult {
    if let Some([principal, key]) = args.add.as_deref() {
        let purpose = match args.purpose {
            KeyFor::Evidence => Purpose::Evidence,
            KeyFor::Artifacts => Purpose::Artifact,
        };
        let added = sign::add(&context.session, purpose, principal, Path::new(key), args.file.as_deref())?;
        let (word, was) = if added.was_there { ("Keeping", ", which is there already") } else { ("Added", "") };
        let (fingerprint, path, plural) = (&added.fingerprint, added.path.display(), purpose.plural());
        context.console.status(word, &format!("{fingerprint} of {principal} for {plural} in `{path}`{was}"));
        if added.is_to_be_named {
            let text =
                format!("`--trust {path}` uses it once, `evidence.trust` in the configuration of the home always");
            context.console.status("", &text);
        }
        return Ok(Exit::Done);
    }
    let found = sign::list(&context.session, args.base.as_deref())?;
    if args.message_format == MessageFormat::Json {
        for key in &found.keys {
            let line = serde_json::to_string(key).map_err(Error::from)?;
            context.console.out(&format!("{line}\n"));
        }
        return Ok(Exit::Done);
    }
    let count = count(found.keys.len() as u64, "key");
    match &found.source {
        TrustSource::Nothing => {
            let hint = "`kforge evidence trust --add PRINCIPAL KEY.pub` adds one";
            context.console.out(&format!("nobody: no file lists keys that may sign evidence; {hint}\n"));
        }
        source => context.console.out(&format!("{count} from {source}:\n")),
    }
    found.keys.iter().for_each(|key| context.console.out(&format!("  {}\n", key.text())));
    Ok(Exit::Done)
}

fn export(context: &Context, args: &EvidenceExport) -> CommandResult {
    let request = ExportRequest { words: args.select.words(), output: args.output.clone(), all: args.all };
    let exported = evidence::export(&context.session, &request)?;
    let kinds: Vec<String> = exported.records.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
    let text = format!(
        "{} ({}) to `{}`, {}; `kforge evidence sign` signs it",
        count(exported.records.values().sum::<u64>(), "record"),
        kinds.join(", "),
        exported.path.display(),
        bytes(exported.bytes)
    );
    context.console.status("Exported", &text);
    Ok(Exit::Done)
}

fn list(context: &Context, args: &EvidenceList) -> CommandResult {
    let request = ListRequest { words: args.select.words(), file: args.file.clone(), all: args.all };
    let Listed { held, more, open } = evidence::list(&context.session, &request)?;
    if args.message_format == MessageFormat::Json {
        for holding in &held {
            let line = serde_json::to_string(holding).map_err(Error::from)?;
            context.console.out(&format!("{line}\n"));
        }
    } else {
        let now = jiff::Timestamp::try_from(context.session.began).map_err(|e| context.fail(&e.to_string()))?;
        context.console.out(&evidence_list::text(&held, now));
    }
    let rest = match more {
        0 => String::new(),
        1 if open => "; 1 more belongs to no known step (`--all` lists it)".into(),
        1 => "; 1 more answers no question of this plan (`--all` lists it)".into(),
        n if open => format!("; {n} more belong to no known step (`--all` lists them)"),
        n => format!("; {n} more answer no question of this plan (`--all` lists them)"),
    };
    context.console.status("Found", &format!("{}{rest}", evidence_list::counted(&held)));
    if open {
        context.console.status(
            "",
            "some questions of this plan depend on steps that were not built, so it is not known which records answer them",
        );
    }
    Ok(Exit::Done)
}
