//! Asking, from a briefing to what lies in the home: against programs and a server that do everything an agent can do wrong.

mod budgets;
mod endpoints;
mod advised;
mod killed;
mod programs;
mod server;
mod concurrent;
mod world;
