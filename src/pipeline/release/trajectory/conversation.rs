//! An attempt as a conversation for supervised fine-tuning: the prompt that the coder got and the reply that was used. Knows answers.

use serde::{Deserialize, Serialize};

use super::Trajectory;
use kforge_types::record::answer::{Exchange, Role};

/// A conversation in the form that trainers read: an object with `messages` only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Conversation {
    /// The messages: `system` unless it is empty, `user`, `assistant`.
    pub messages: Vec<Message>,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Message {
    /// Who speaks.
    pub role: Speaker,
    /// The text.
    pub content: String,
}

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Speaker {
    /// Whoever states the role that the model is to take.
    System,
    /// Whoever states the task.
    User,
    /// The model.
    Assistant,
}

/// The conversation of an attempt; none if it asked nobody, as the agent `rules` does, or if no reply was usable.
pub fn conversation(of: &Trajectory) -> Option<Conversation> {
    let is_used = |exchange: &&Exchange| exchange.role == Role::Coder && exchange.refused.is_none();
    let exchange = of.answer.exchanges.iter().rfind(is_used).filter(|_| of.answer.proposal.is_some())?;
    let message = |role, content: &String| Message { role, content: content.clone() };
    let system = Some(&exchange.prompt.system).filter(|text| !text.is_empty());
    let mut messages: Vec<Message> = system.map(|text| message(Speaker::System, text)).into_iter().collect();
    messages.push(message(Speaker::User, &exchange.prompt.user));
    messages.push(message(Speaker::Assistant, &exchange.reply));
    Some(Conversation { messages })
}
