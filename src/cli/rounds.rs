//! Events of rounds as text.

use super::console::Console;
use kforge_ops::optimize::Became;
use kforge_ops::optimize::event::{Rest, RoundEvent};
use kforge_types::record::event::Event;

/// The verb for a kernel that no round has changed or will change.
const UNCHANGED: &str = "Unchanged";

/// Prints an event.
pub(super) fn say(console: &Console, event: &RoundEvent<'_>) {
    match event {
        RoundEvent::Built { success, steps, verdicts } => {
            console.event(&Event::BuildFinished { success: *success, steps: *steps, verdicts: *verdicts });
        }
        RoundEvent::Judged { seat, variant, became } => {
            let (verb, how) = became_in_words(became);
            let colon = if how.is_empty() { "" } else { ": " };
            console.status(verb, &format!("{}: {variant}{colon}{how}", seat.name()));
        }
        RoundEvent::Rests { seat, tried, why } => {
            // A kernel for which nothing was tried was not optimized.
            let verb = if *tried && !matches!(why, Rest::Accepted { .. }) { "Optimized" } else { UNCHANGED };
            console.status(verb, &format!("{}: {why}", seat.name()));
        }
        RoundEvent::LeftOut(methods) => {
            let methods: Vec<String> = methods.iter().map(|name| format!("`{name}`")).collect();
            console.status("", &format!("no variant combines {} with the others", methods.join(", ")));
        }
    }
}

/// The verb of a status line, and the text after the variant.
fn became_in_words(became: &Became) -> (&'static str, String) {
    let first = |text: &str| text.lines().next().unwrap_or_default().to_string();
    match became {
        Became::Correct => ("Correct", String::new()),
        Became::Undecided => ("Undecided", String::new()),
        Became::Refused(why) => ("Refused", first(why)),
        Became::Wrong(how) => ("Wrong", first(how)),
        Became::Hidden => ("Partial", "correct for the shown shapes, not for every shape".into()),
        Became::Idle => ("Idle", "it serves none of the shown shapes".into()),
    }
}
