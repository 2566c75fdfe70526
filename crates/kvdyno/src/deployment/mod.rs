//! `kvdyno deployment`, and `kvdyno run --deployment`: the life of a deployment whose machines cost money, from nothing to
//! nothing. Steps are command lines of a file; what will be made is written down before, so that nothing is forgotten.

mod bill;
mod commands;
mod course;
mod environment;
mod file;
mod machines;
mod notice;
mod record;
mod run;
mod setting_up;
mod steps;
mod tune;
mod tuning;
mod undoing;
mod variables;
mod written;

pub use commands::deployment;
pub use notice::tell_of_the_forgotten;
pub use run::run;
