//! There is nothing to do here: the manifest says why cargo asks for this file.

fn main() {}
