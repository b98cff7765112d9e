//! The face of the program: every command as people start it, in folders and with a home of its own, without a network. Builds are of a few elements on `cpu`.

mod docs;
mod edits;
mod embed;
mod faults;
mod queries;
mod pages;
mod place;
mod schemas;
mod shared;
mod starts;
