//! `kvdyno testbed kinds`: the kinds that can be set up, and what is installed of them.

use kvdyno_core::ground::hints::hint;
use kvdyno_testbed::install::Software;
use kvdyno_testbed::{
    DISK, DISK_SOFTWARE, NETWORK, NETWORK_SOFTWARE, SHARED, Setting, TestbedKind, registry,
};

use kvdyno_stores::registry::LeftOut;

use super::fitting::scheme_of;
use crate::exit::{Exit, Failure};

/// Lists the kinds of testbeds.
///
/// # Errors
/// None; the type is that of all commands.
pub fn list() -> Result<Exit, Failure> {
    for kind in registry::kinds() {
        say!("{}  {}", kind.name, kind.summary);
        say!("  nodes      {}", nodes(kind));
        let absent: Vec<String> = kind
            .software
            .iter()
            .filter(|software| software.find().is_none())
            .map(|software| software.shown())
            .collect();
        match absent.is_empty() {
            true => say!("  installed  yes"),
            false => say!(
                "  installed  no ({}): kvdyno testbed install {}",
                absent.join(", "),
                kind.name
            ),
        }
        if let Some(missing) = scheme_of(kind.name).and_then(|scheme| registry_lacks(&scheme)) {
            say!(
                "  driver     not in this build: build kvdyno with `--features {}`",
                missing.feature
            );
        }
        kind.settings.iter().for_each(show_setting);
        say!("");
    }
    say!("Settings of all:");
    SHARED.iter().for_each(show_setting);
    Ok(Exit::Done)
}

/// Returns the driver that this build lacks of those that testbeds want.
fn registry_lacks(scheme: &str) -> Option<&'static LeftOut> {
    kvdyno_stores::registry::left_out().iter().find(|missing| missing.scheme == scheme)
}

fn nodes(kind: &TestbedKind) -> String {
    match (kind.allowed.start(), kind.allowed.end()) {
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{} ({least} to {most})", kind.nodes),
    }
}

fn show_setting(setting: &Setting) {
    let default = match setting.default {
        "" => "the server's own default".to_owned(),
        default => format!("default {default}"),
    };
    say!("  ?{}={}  {}; {default}", setting.name, setting.values.shown(), setting.meaning);
}

/// Returns the software that the kind of this name needs.
///
/// # Errors
/// [`Failure`] with the nearest name if there is no such kind.
pub fn software(name: &str) -> Result<Vec<&'static Software>, Failure> {
    // A user who copies the whole word from an error means its kind.
    let name = name.split([':', '?']).next().unwrap_or(name);
    if name == NETWORK {
        return Ok(NETWORK_SOFTWARE.to_vec());
    }
    if name == DISK {
        return Ok(DISK_SOFTWARE.to_vec());
    }
    match registry::kind(name) {
        Some(kind) => Ok(kind.software.to_vec()),
        None => {
            let names: Vec<&str> = registry::kinds().iter().map(|kind| kind.name).collect();
            Err(Failure::usage(format!("there is no testbed {name}; {}", hint(name, &names))))
        }
    }
}
