//! From a briefing to an answer: asks the advisor if there is a kernel to diagnose, then the coder. Handles repetitions and budgets, and records every reply
//! before using it. Does not decide what to ask, and does not evaluate what was written.
//!
//! A reply is on disk before it is read. After a kill, a crash or a full disk, the same question finds the reply there, and nothing is paid for twice. This
//! also holds for unusable replies.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use super::clock::TICK;
use super::command::Program;
use super::http::{self, Endpoint};
use super::key::{Key, Redactor};
use super::ledger::{Admission, Ledger, Reserve, is_bounded, price};
use super::permitted::PermittedKeys;
use super::{AskError, AskEvent, Clock, Failure, RawReply};
use crate::optimize::agents::briefing::Briefing;
use crate::optimize::agents::prompt::prompt;
use crate::optimize::agents::reply::{Expected, ParsedReply, ReplyError, parse_reply};
use kforge_engine::answers::{Answers, Reply, ReplyKey};
use kforge_foundation::config::Environment;
use kforge_types::model::Agent;
use kforge_types::model::agent::AgentAccess;
use kforge_types::record::answer::{ANSWER_FORMAT, Advice, Answer, Exchange, Prompt, Proposal, Question};

/// Longest pause between two tries when the agent states no pause. Pauses double from one second.
const LONGEST_PAUSE_S: u64 = 60;

/// Longest pause that kforge grants an agent.
const LONGEST_WAIT_S: u64 = 900;

/// What asking needs from its surroundings.
pub struct Surroundings<'a> {
    /// Where replies are kept.
    pub answers: Answers,
    /// Every agent of the package. Their keys are removed from all texts, whichever agent is asked.
    pub agents: &'a [Agent],
    /// The environment, for keys, proxies and programs.
    pub environment: &'a Environment,
    /// Which keys the user lets go to which hosts.
    pub permitted: PermittedKeys,
    /// Whether kforge is offline.
    pub offline: bool,
    /// Set when the user interrupts.
    pub interrupted: &'a AtomicBool,
    /// The folder of the package, in which programs are run.
    pub folder: &'a Path,
    /// The clock. One clock serves the whole run, because rates are counted by it.
    pub clock: Arc<dyn Clock>,
    /// What was spent in this run so far, and which request may start when.
    pub ledger: &'a Ledger,
    /// The position of the question among the questions that are asked at the same time. The first one goes first.
    pub order: usize,
}

/// The agents of a package, as one question asks them. Questions that are asked at the same time have one `Asking` each and share the ledger.
pub struct Asking<'a> {
    around: Surroundings<'a>,
    redactor: Redactor,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.leaves();
    }
}

/// One request with its repetitions.
struct AgentRequest<'q> {
    question: &'q Question,
    briefing: &'q Briefing,
    expected: Expected,
    advice: Option<&'q Advice>,
    agent: &'q Agent,
    /// The agent that is asked next, unless this is the last one.
    next: Option<&'q Agent>,
    /// The most that the next request may take, if budget is held for it.
    then: Option<Reserve>,
}

/// The result of a request.
struct AgentReply {
    said: Result<ParsedReply, ReplyError>,
    exchanges: Vec<Exchange>,
    /// When the last reply came.
    at: String,
}

impl<'a> Asking<'a> {
    /// Creates it without asking anyone.
    pub fn new(around: Surroundings<'a>) -> Self {
        let redactor = Redactor::of(around.agents.iter().filter_map(key_variable), around.environment);
        Asking { around, redactor }
    }

    /// Gives up the question's place, so that the questions behind it need not wait for it.
    pub fn leaves(&self) {
        self.around.ledger.leaves(self.around.order);
    }

    /// Registers the question with the first agent that it will ask. Called for all questions that are asked at the same time before any of them asks.
    ///
    /// # Errors
    /// The recorded replies cannot be read.
    pub fn expects(
        &self,
        question: &Question,
        briefing: &Briefing,
        advisor: Option<&Agent>,
        coder: &Agent,
    ) -> Result<(), AskError> {
        let Surroundings { ledger, order, .. } = self.around;
        if let Some((advisor, expected)) = advisor.zip(to_advise(briefing))
            && self.is_to_ask(question, expected, advisor)?
        {
            ledger.expects(advisor, order);
            if is_bounded(coder) && self.is_to_ask(question, Expected::Proposal, coder)? {
                // The coder's request is admitted together with the advisor's: see the ledger.
                ledger.expects(coder, order);
            }
            return Ok(());
        }
        ledger.expects(coder, order);
        Ok(())
    }

    /// Whether no reply of an agent to a question is recorded.
    fn is_to_ask(&self, question: &Question, expected: Expected, agent: &Agent) -> Result<bool, AskError> {
        let (role, agent) = (expected.role(), agent.identity());
        let asked = ReplyKey { question: question.clone(), role, agent, number: 0 };
        Ok(self.around.answers.reply(&asked)?.is_none())
    }

    /// Asks for one attempt at a round. First the advisor, if there is material: for a diagnosis of the parent, or for a correction of a failed attempt. Then
    /// the coder, with that advice. An advisor with unusable replies gives no advice. A coder's unusable replies become a refused answer, because they were
    /// paid for.
    ///
    /// The answer is not recorded, but its replies are. The same question finds them and produces the same answer word for word.
    ///
    /// # Errors
    /// There is no answer: see [`AskError`].
    pub fn ask(
        &self,
        question: &Question,
        briefing: &Briefing,
        advisor: Option<&Agent>,
        coder: &Agent,
        on_event: &mut dyn FnMut(AskEvent),
    ) -> Result<Answer, AskError> {
        let (mut advice, mut exchanges) = (None, vec![]);
        if let Some((advisor, expected)) = advisor.zip(to_advise(briefing)) {
            let then = match self.is_to_ask(question, Expected::Proposal, coder)? {
                true => Some(Reserve::of(
                    coder,
                    &self.prompt(Expected::Proposal, briefing, expected.longest_advice().as_ref(), None),
                )),
                false => None,
            };
            let next = Some(coder);
            let wanted = AgentRequest { question, briefing, expected, advice: None, agent: advisor, next, then };
            let came = self.request(&wanted, on_event)?;
            exchanges.extend(came.exchanges);
            if let Ok(ParsedReply::Advice(said)) = came.said {
                advice = Some(said);
            }
            // The next request of this question is for the coder, whether or not the advisor was asked.
            self.around.ledger.moves(coder, self.around.order);
        }
        let wanted = AgentRequest {
            question,
            briefing,
            expected: Expected::Proposal,
            advice: advice.as_ref(),
            agent: coder,
            next: None,
            then: None,
        };
        let came = self.request(&wanted, on_event)?;
        exchanges.extend(came.exchanges);
        let (proposal, refused): (Option<Proposal>, Option<String>) = match came.said {
            Ok(ParsedReply::Proposal(proposal)) => (Some(proposal), None),
            Ok(ParsedReply::Advice(_)) => (None, Some("it answers as an advisor".into())),
            Err(why) => (None, Some(why.told())),
        };
        let answered_at = came.at;
        let question = question.clone();
        Ok(Answer { format: ANSWER_FORMAT, question, answered_at, advice, proposal, refused, exchanges })
    }

    /// A prompt as it is sent, with all keys removed.
    fn prompt(&self, expected: Expected, briefing: &Briefing, advice: Option<&Advice>, why: Option<&str>) -> Prompt {
        let sent = prompt(expected, briefing, advice, why);
        Prompt { system: self.redactor.clean(sent.system), user: self.redactor.clean(sent.user) }
    }

    /// Asks until a reply is usable, or until the agent's limit of tries is reached.
    fn request(&self, wanted: &AgentRequest<'_>, on_event: &mut dyn FnMut(AskEvent)) -> Result<AgentReply, AskError> {
        let (role, agent) = (wanted.expected.role(), wanted.agent);
        let (mut exchanges, mut why, mut failures, mut number) = (vec![], None, 0, 0);
        loop {
            let sent = self.prompt(wanted.expected, wanted.briefing, wanted.advice, why.as_deref());
            let asked = ReplyKey { question: wanted.question.clone(), role, agent: agent.identity(), number };
            let reply = match self.around.answers.reply(&asked)? {
                Some(reply) => {
                    let differs = reply.exchange.prompt != sent;
                    on_event(AskEvent::Recalled { role, agent: agent.name.clone(), differs });
                    reply
                }
                None => self.fetch(wanted, &asked, &sent, &mut failures, on_event)?,
            };
            let said = match reply.cut {
                true => Err(ReplyError::Cut),
                false => parse_reply(wanted.expected, &reply.exchange.reply, wanted.briefing),
            };
            let mut exchange = reply.exchange;
            exchange.refused = said.as_ref().err().map(ReplyError::told);
            exchanges.push(exchange);
            let name = || agent.name.clone();
            match said {
                Err(wrong) if number + failures < agent.retries => {
                    let wrong = wrong.told();
                    on_event(AskEvent::Retrying { role, agent: name(), why: wrong.clone(), in_s: 0.0 });
                    why = Some(wrong);
                    number += 1;
                }
                said => {
                    if let Err(why) = &said {
                        on_event(AskEvent::Refused { role, agent: name(), why: why.told() });
                    }
                    return Ok(AgentReply { said, exchanges, at: reply.answered_at });
                }
            }
        }
    }

    /// Asks the agent until it replies, and records the reply. `failures` counts the tries without a reply.
    fn fetch(
        &self,
        wanted: &AgentRequest<'_>,
        asked: &ReplyKey,
        prompt: &Prompt,
        failures: &mut u32,
        on_event: &mut dyn FnMut(AskEvent),
    ) -> Result<Reply, AskError> {
        let agent = wanted.agent;
        let name = || agent.name.clone();
        // Before anything is paid for, check that every agent of this question can be asked.
        for agent in std::iter::once(agent).chain(wanted.next) {
            self.ready(agent)?;
        }
        loop {
            let reserve = Reserve::of(agent, prompt);
            self.starts(agent, reserve, wanted.next.zip(wanted.then), on_event)?;
            on_event(AskEvent::Asking { role: asked.role, agent: name() });
            let came = self.send(wanted, asked, prompt);
            let own = 1u64.checked_shl(*failures).unwrap_or(LONGEST_PAUSE_S).min(LONGEST_PAUSE_S);
            let pause = |after_s: Option<u64>| Duration::from_secs(own.max(after_s.unwrap_or(0)));
            let (reply, alone) = match &came {
                Ok(Ok(reply)) => (Some(&reply.exchange), None),
                // The agent itself is overloaded, so every other request would be rejected too.
                Ok(Err(Failure::Again { after_s, busy: true, .. })) if after_s.is_none_or(|s| s <= LONGEST_WAIT_S) => {
                    (None, Some(self.around.clock.now() + pause(*after_s)))
                }
                _ => (None, None),
            };
            self.around.ledger.settle(agent, reserve, reply, alone);
            let (why, after_s) = match came? {
                Ok(reply) => {
                    let Exchange { tokens, money, took_ms, .. } = reply.exchange;
                    on_event(AskEvent::Answered { role: asked.role, agent: name(), tokens, money, took_ms });
                    return Ok(reply);
                }
                Err(Failure::Interrupted) => return Err(AskError::Interrupted),
                Err(Failure::Never(why)) => {
                    return Err(AskError::Denied { agent: name(), why: self.redactor.clean(why) });
                }
                Err(Failure::Again { why, after_s, .. }) => (self.redactor.clean(why), after_s),
            };
            if asked.number + *failures >= agent.retries {
                return Err(AskError::Unreachable { agent: name(), why });
            }
            if let Some(s) = after_s.filter(|s| *s > LONGEST_WAIT_S) {
                return Err(AskError::Unreachable {
                    agent: name(),
                    why: format!("{why}; it asks for a pause of {s} s"),
                });
            }
            let pause = pause(after_s);
            *failures += 1;
            on_event(AskEvent::Retrying { role: asked.role, agent: name(), why, in_s: pause.as_secs_f64() });
            self.pause(pause)?;
        }
    }

    /// Waits until a request may start, together with the request that follows it, and starts it.
    fn starts(
        &self,
        agent: &Agent,
        reserve: Reserve,
        then: Option<(&Agent, Reserve)>,
        on_event: &mut dyn FnMut(AskEvent),
    ) -> Result<(), AskError> {
        let Surroundings { ledger, order, .. } = self.around;
        loop {
            if self.is_interrupted() {
                return Err(AskError::Interrupted);
            }
            match ledger.admit(agent, order, reserve, then, self.around.clock.now()) {
                Admission::Go => return Ok(()),
                Admission::Busy => ledger.wait(TICK),
                Admission::Spent(what) => return Err(AskError::Spent { agent: agent.name.clone(), what }),
                Admission::After(held) => {
                    on_event(AskEvent::Waiting { agent: agent.name.clone(), for_s: held.as_secs_f64() });
                    self.pause(held)?;
                }
            }
        }
    }

    /// Sends one request and records its reply.
    fn send(
        &self,
        wanted: &AgentRequest<'_>,
        asked: &ReplyKey,
        prompt: &Prompt,
    ) -> Result<Result<Reply, Failure>, AskError> {
        let keeper = Keeper {
            answers: self.around.answers.clone(),
            clock: Arc::clone(&self.around.clock),
            redactor: self.redactor.clone(),
            began: self.around.clock.now(),
            agent: wanted.agent.clone(),
            asked: asked.clone(),
            prompt: prompt.clone(),
        };
        match &wanted.agent.reach {
            AgentAccess::Command { program } => {
                let program = self.program(program, wanted.agent);
                match program.ask(asked.role, wanted.question, prompt, self.around.interrupted) {
                    Ok(got) => Ok(Ok(keeper.keep(got)?)),
                    Err(failure) => Ok(Err(failure)),
                }
            }
            AgentAccess::Http { .. } => {
                let endpoint = self.endpoint(wanted.agent)?;
                let (sender, receiver) = mpsc::channel();
                // A separate thread, so that an interruption is seen while the endpoint is working. The thread records the reply itself. So a reply that comes
                // after the interruption is not lost while this process still runs.
                let work = move || {
                    let came = endpoint.ask(&keeper.prompt).map(|got| keeper.keep(got));
                    let _ = sender.send(came);
                };
                if let Err(e) = std::thread::Builder::new().name("agent".into()).spawn(work) {
                    return Ok(Err(Failure::Never(format!("no thread could be started for the request: {e}"))));
                }
                loop {
                    match receiver.recv_timeout(TICK) {
                        Ok(Ok(kept)) => return Ok(Ok(kept?)),
                        Ok(Err(failure)) => return Ok(Err(failure)),
                        Err(RecvTimeoutError::Timeout) if self.is_interrupted() => {
                            return Ok(Err(Failure::Interrupted));
                        }
                        Err(RecvTimeoutError::Timeout) => {}
                        Err(RecvTimeoutError::Disconnected) => {
                            return Ok(Err(Failure::Never("the request broke off inside kforge".into())));
                        }
                    }
                }
            }
        }
    }

    /// Checks that an agent can be asked at all.
    fn ready(&self, agent: &Agent) -> Result<(), AskError> {
        match &agent.reach {
            AgentAccess::Command { program } => {
                let file = self.program(program, agent).file();
                file.map(drop).map_err(|why| AskError::Denied { agent: agent.name.clone(), why })
            }
            AgentAccess::Http { .. } if self.around.offline => Err(AskError::Offline(agent.name.clone())),
            AgentAccess::Http { .. } => self.endpoint(agent).map(drop),
        }
    }

    fn program<'p>(&'p self, words: &'p [String], agent: &Agent) -> Program<'p> {
        let Surroundings { folder, environment, .. } = self.around;
        Program { words, folder, environment, limit: Duration::from_secs(agent.time_limit_s) }
    }

    fn endpoint(&self, agent: &Agent) -> Result<Endpoint, AskError> {
        let AgentAccess::Http { url, model, temperature, max_tokens, .. } = &agent.reach else {
            return Err(AskError::Denied { agent: agent.name.clone(), why: "it is not an endpoint".into() });
        };
        let environment = self.around.environment;
        if let Some(variable) = key_variable(agent) {
            let checked = self.around.permitted.check(variable, &url.value);
            checked.map_err(|why| AskError::KeyRefused { agent: agent.name.clone(), why })?;
        }
        let key = key_variable(agent).map(|variable| Key::of(variable, environment)).transpose();
        let key = key.map_err(|why| AskError::NoKey { agent: agent.name.clone(), why })?;
        let proxy = http::proxy(&url.value, environment);
        let proxy = proxy.map_err(|why| AskError::Denied { agent: agent.name.clone(), why: why.to_string() })?;
        Ok(Endpoint {
            url: url.value.clone(),
            model: model.clone(),
            key,
            temperature: *temperature,
            max_tokens: *max_tokens,
            limit: Duration::from_secs(agent.time_limit_s),
            proxy,
            redactor: self.redactor.clone(),
        })
    }

    fn is_interrupted(&self) -> bool {
        self.around.interrupted.load(Ordering::Relaxed)
    }

    /// Waits for a time.
    fn pause(&self, time: Duration) -> Result<(), AskError> {
        self.around.clock.wait(time, self.around.interrupted);
        if self.is_interrupted() { Err(AskError::Interrupted) } else { Ok(()) }
    }
}

/// Turns a reply into a record and saves it.
struct Keeper {
    answers: Answers,
    clock: Arc<dyn Clock>,
    redactor: Redactor,
    began: Duration,
    agent: Agent,
    asked: ReplyKey,
    prompt: Prompt,
}

impl Keeper {
    fn keep(&self, got: RawReply) -> io::Result<Reply> {
        let took = self.clock.now().saturating_sub(self.began);
        let exchange = Exchange {
            role: self.asked.role,
            agent: self.asked.agent.clone(),
            prompt: self.prompt.clone(),
            reply: self.redactor.clean(got.reply),
            refused: None,
            tokens: got.tokens,
            money: got.tokens.and_then(|tokens| price(&self.agent, tokens)),
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        };
        let reply = Reply { answered_at: self.clock.today(), exchange, cut: got.cut };
        self.answers.keep(&self.asked, reply)
    }
}

/// The variable that holds an agent's key.
fn key_variable(agent: &Agent) -> Option<&str> {
    match &agent.reach {
        AgentAccess::Http { key, .. } => key.as_ref().map(|key| key.value.as_str()),
        AgentAccess::Command { .. } => None,
    }
}

/// What an advisor could be asked for, if there is material.
fn to_advise(briefing: &Briefing) -> Option<Expected> {
    if briefing.attempt > 0 {
        return briefing.failed.as_ref().map(|_| Expected::Correction);
    }
    let parent = briefing.parent.as_ref()?;
    (parent.verified || parent.time_ns.is_some() || !briefing.metrics.is_empty()).then_some(Expected::Diagnosis)
}

#[cfg(test)]
#[path = "tests/mod.rs"]
mod tests;
