//! The load loop alone: a store that answers at once shows the cost of everything around a store.

use super::pairs::Median;
use super::{Options, Section, kvdyno};
use crate::steps::{StepFailure, root};

/// Requests of each client.
const REQUESTS: u64 = 20_000_000;

/// A load, with the bound asked of it.
struct Load {
    name: &'static str,
    /// Records hit at random.
    records: u64,
    clients: u64,
    verification: bool,
    bound: LoadBound,
}

/// Bound that is asked of a load.
enum LoadBound {
    /// At least so many million operations a second for each core.
    Rate(f64),
    /// At most so much more time for each operation than the verified load of 1 million records.
    Slowdown(f64),
    /// Together at least so many times the rate of that load.
    Speedup(f64),
}

/// Loads; the later ones are compared with the second.
const LOADS: [Load; 4] = [
    Load {
        name: "verification off",
        records: 1_000_000,
        clients: 1,
        verification: false,
        bound: LoadBound::Rate(12.0),
    },
    Load {
        name: "verified",
        records: 1_000_000,
        clients: 1,
        verification: true,
        bound: LoadBound::Rate(8.0),
    },
    Load {
        name: "verified, two clients",
        records: 1_000_000,
        clients: 2,
        verification: true,
        bound: LoadBound::Speedup(1.9),
    },
    Load {
        name: "verified, 100 million records",
        records: 100_000_000,
        clients: 1,
        verification: true,
        bound: LoadBound::Slowdown(1.5),
    },
];

pub(super) fn run(options: &Options) -> Result<Section, StepFailure> {
    // In turns, so that a change on the machine affects all of them.
    let mut each = LOADS.map(|_| Vec::new());
    for pass in 0..options.pairs {
        for (load, each) in LOADS.iter().zip(&mut each) {
            each.push(cpu_ns(load, options)?);
        }
        println!("pass {} of {}", pass + 1, options.pairs);
    }
    let mut text = String::from(
        "| load | CPU ns each | million operations a second for each core | asked for |\n\
         | --- | --- | --- | --- |\n",
    );
    for (load, figures) in LOADS.iter().zip(&each) {
        let rates: Vec<_> = figures.iter().map(|ns| 1e3 / ns).collect();
        let ratios = figures.iter().zip(&each[1]).map(|(ns, one)| ns / one);
        let bound = match load.bound {
            LoadBound::Rate(rate) => format!("{rate}"),
            LoadBound::Slowdown(most) => {
                let ratios: Vec<_> = ratios.collect();
                format!("at most {most} × the time: {}", Median::of(&ratios))
            }
            LoadBound::Speedup(least) => {
                let ratios: Vec<_> = ratios.map(|ratio| load.clients as f64 / ratio).collect();
                format!("at least {least} × the rate: {}", Median::of(&ratios))
            }
        };
        let (ns, rate) = (Median::of(figures), Median::of(&rates));
        text += &format!("| {} | {ns} | {rate} | {bound} |\n", load.name);
    }
    text += "\nCPU is that of the whole process, so that what else runs on the machine counts less; \
             two clients are two threads, and their rate together is twice what each core gives.\n";
    Ok(Section { name: "null", text })
}

fn cpu_ns(load: &Load, options: &Options) -> Result<f64, StepFailure> {
    let out = root().join("target/bench/null");
    let mut command = kvdyno::command(&out, &[]);
    command.args(["--store", "null:", "--value", "100B", "--mix", "get=100"]);
    for (option, number) in [
        ("--records", load.records),
        ("--clients", load.clients),
        ("--requests", options.scaled(REQUESTS) * load.clients),
    ] {
        command.arg(option).arg(number.to_string());
    }
    if !load.verification {
        command.arg("--no-verify");
    }
    Ok(kvdyno::run(&out, &mut command)?.cpu_ns())
}
