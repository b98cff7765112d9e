//! Loaders against kforge: what a generated program asks a driver for is what kforge itself would ask for, for every kernel of the examples and for launches with
//! everything that a manifest can say. The driver is one of the tests' own, which writes down what it is asked for.

mod c;
mod command;
mod documents;
mod examples;
mod expected;
mod lab;
mod python;
mod rust;
mod specialised;
mod triton;
