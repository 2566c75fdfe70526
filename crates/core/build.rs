//! Tells kvdyno by which Cargo profile it is built (`debug`, `release`, `dist`): a result names it, for figures
//! of different ones are not alike. Cargo itself tells a build script `debug` or `release` only; the folder that it
//! builds in has the name: `target/[TRIPLE/]PROFILE/build/PACKAGE/out`.

use std::path::Path;

fn main() {
    let told = |name: &str| std::env::var(name).unwrap_or_default();
    let out = told("OUT_DIR");
    let folder = Path::new(&out).ancestors().nth(3).and_then(Path::file_name);
    let profile =
        folder.and_then(|name| name.to_str()).map_or_else(|| told("PROFILE"), str::to_owned);
    println!("cargo::rustc-env=KVDYNO_PROFILE={profile}");
    println!("cargo::rerun-if-changed=build.rs");
}
