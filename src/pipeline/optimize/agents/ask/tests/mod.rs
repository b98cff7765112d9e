//! Asking, from a briefing to the files in the home, against programs and a server that make every mistake an agent can make.

mod budgets;
mod endpoints;
mod advised;
mod killed;
mod programs;
mod server;
mod concurrent;
mod world;
