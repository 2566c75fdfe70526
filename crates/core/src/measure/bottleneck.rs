//! Bottleneck of a phase, as far as samples show it: threads, processors, storage, the network.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::resources::ResourceSummary;
use super::worker_use::WorkerUse;
use crate::store::Threading;

/// Share of the time beyond which a thread is full: it could not have worked more.
pub const FULL_THREAD: f64 = 0.90;
/// Share of the time beyond which all processors that a process or the machine may use are full.
pub const FULL_PROCESSORS: f64 = 0.95;
/// Share of one processor's time beyond which storage is full: processors were idle for so long for want of
/// storage.
pub const FULL_STORAGE: f64 = 0.50;
/// Share of its speed beyond which a link is full; the share leaves out headers of packets.
pub const FULL_LINK: f64 = 0.85;
/// Number of the system's clock ticks from which on a share of them is told: each count may be wrong by one.
pub const LEAST_TICKS: u64 = 100;
/// Time of a thread from which on a share of it is told: a thread gets its processor for some milliseconds at
/// once.
pub const LEAST_TIME: Duration = Duration::from_millis(100);

/// Resource that was full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "what")]
pub enum Limit {
    /// A thread of kvdyno, so that the client was the limit.
    Client {
        /// Share of the time that it worked.
        busy: f64,
    },
    /// The threads in which the engine runs, in this process.
    Engine {
        /// Share of the time that they worked.
        busy: f64,
    },
    /// One thread of a server process, on one core.
    ServerThread {
        /// Number of the process.
        pid: u32,
        /// Share of the time that it worked.
        busy: f64,
    },
    /// All processors that a server process may use.
    ServerProcessors {
        /// Number of the process.
        pid: u32,
        /// Number of processors kept busy.
        processors: f64,
    },
    /// All processors of the machine, by any programs that run on it.
    Machine {
        /// Share of their time that they worked or were given to other virtual machines.
        busy: f64,
    },
    /// Storage: processors waited for it.
    Disk {
        /// Share of one processor's time that went by idle for want of storage.
        waiting: f64,
    },
    /// A network link.
    Network {
        /// Share of its speed that it carried.
        used: f64,
    },
    /// Nothing was full, as far as can be seen.
    NoneSeen,
}

impl Limit {
    /// Finds what was full in a phase. It looks at the client first, because nothing else can be concluded if
    /// the client was full. `processors` is how many the machine has, `of_servers` how many its servers were
    /// kept to. `None` of a phase that was too short to tell: the use of servers and machines is counted in
    /// ticks.
    #[must_use]
    pub fn of(
        workers: &[WorkerUse],
        threading: Threading,
        used: &ResourceSummary,
        processors: usize,
        of_servers: Option<usize>,
    ) -> Option<Limit> {
        let timed = workers.iter().filter(|worker| worker.wall >= LEAST_TIME);
        let busiest = timed.map(WorkerUse::wanted).fold(0.0, f64::max);
        if busiest > FULL_THREAD {
            return Some(match threading {
                Threading::InProcess => Limit::Engine { busy: busiest },
                _ => Limit::Client { busy: busiest },
            });
        }
        let told = || of_ticks(used, processors, of_servers.unwrap_or(processors));
        (used.ticks() >= LEAST_TICKS).then(told)
    }

    /// Returns the limit as a sentence without a stop. `name` gives the name of a server process.
    #[must_use]
    pub fn text(&self, name: impl Fn(u32) -> String) -> String {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        match self {
            Limit::Client { busy } => {
                format!(
                    "limited by the client: a thread of kvdyno had work {} of the time",
                    percent(*busy)
                )
            }
            Limit::Engine { busy } => {
                format!(
                    "limited by the processor: a thread in the engine worked {} of the time",
                    percent(*busy)
                )
            }
            Limit::ServerThread { pid, busy } => {
                format!(
                    "limited by one core of {}: a thread worked {} of the time",
                    name(*pid),
                    percent(*busy)
                )
            }
            Limit::ServerProcessors { pid, processors } => {
                format!("limited by the processors of {}: it kept {processors:.2} busy", name(*pid))
            }
            Limit::Machine { busy } => {
                format!(
                    "limited by the machine: all its processors worked {} of the time",
                    percent(*busy)
                )
            }
            Limit::Disk { waiting } => format!(
                "limited by the disk: a processor was idle for want of storage {} of the time",
                percent(*waiting)
            ),
            Limit::Network { used } => {
                format!("limited by the network: a link carried {} of its speed", percent(*used))
            }
            Limit::NoneSeen => {
                "no limit seen: no thread, processor, disk or link was full".to_owned()
            }
        }
    }
}

/// Finds what was full, of the resources whose use is counted in ticks.
fn of_ticks(used: &ResourceSummary, processors: usize, of_servers: usize) -> Limit {
    if let Some(limit) = of_server(used, of_servers) {
        return limit;
    }
    if used.busy + used.steal > FULL_PROCESSORS {
        return Limit::Machine { busy: used.busy + used.steal };
    }
    let waiting = used.iowait * processors as f64;
    if waiting > FULL_STORAGE {
        return Limit::Disk { waiting };
    }
    match used.link.filter(|used| *used > FULL_LINK) {
        Some(used) => Limit::Network { used },
        None => Limit::NoneSeen,
    }
}

fn of_server(used: &ResourceSummary, processors: usize) -> Option<Limit> {
    let full = used.servers.iter().filter(|s| s.busiest_thread.is_some_and(|b| b > FULL_THREAD));
    let busier = |a: &&super::resources::ServerUse, b: &&super::resources::ServerUse| {
        a.busiest_thread.unwrap_or(0.0).total_cmp(&b.busiest_thread.unwrap_or(0.0))
    };
    if let Some(server) = full.max_by(busier) {
        let busy = server.busiest_thread.unwrap_or(0.0);
        return Some(Limit::ServerThread { pid: server.pid, busy });
    }
    let of_process = used.servers.iter().filter_map(|s| Some((s.pid, s.used?.processors)));
    let (pid, most) = of_process.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let full = most > FULL_PROCESSORS * processors as f64;
    full.then_some(Limit::ServerProcessors { pid, processors: most })
}

#[cfg(test)]
mod tests {
    use super::super::resources::{ProcessUse, ServerUse};
    use super::*;

    fn process(processors: f64) -> ProcessUse {
        ProcessUse {
            processors,
            user: Duration::ZERO,
            system: Duration::ZERO,
            peak_rss: 0,
            read_bytes: None,
            written_bytes: None,
            context_switches: None,
        }
    }

    fn used() -> ResourceSummary {
        let server = ServerUse {
            pid: 7,
            used: Some(process(0.5)),
            alive: true,
            busiest_thread: Some(0.4),
            longest_wait: None,
        };
        ResourceSummary {
            span: Duration::from_secs(10),
            busy: 0.5,
            steal: 0.0,
            iowait: 0.0,
            own: process(0.5),
            servers: vec![server],
            link: None,
            others: None,
        }
    }

    fn limit(busy: f64, threading: Threading, used: &ResourceSummary) -> Limit {
        let wall = Duration::from_secs(10);
        let worker = WorkerUse { wall, cpu: wall.mul_f64(busy), ..WorkerUse::default() };
        Limit::of(&[worker], threading, used, 4, None).expect("ten seconds tell")
    }

    /// A short phase has no more than one tick of a clock.
    #[test]
    fn of_a_short_phase_nothing_is_said() {
        let of = |millis: u64| {
            let span = Duration::from_millis(millis);
            let mut full = ResourceSummary { span, busy: 1.0, iowait: 1.0, ..used() };
            full.servers[0].busiest_thread = Some(1.0);
            let worker = WorkerUse { wall: span, cpu: span, ..WorkerUse::default() };
            let idle = WorkerUse { wall: span, ..WorkerUse::default() };
            [worker, idle].map(|it| Limit::of(&[it], Threading::Networked, &full, 4, None))
        };
        assert_eq!(of(5), [None, None]);
        assert_eq!(of(999), [Some(Limit::Client { busy: 1.0 }), None]);
        assert_eq!(of(1_000)[1], Some(Limit::ServerThread { pid: 7, busy: 1.0 }));
    }

    #[test]
    fn each_resource_is_named_when_it_is_full() {
        let net = Threading::Networked;
        assert_eq!(limit(0.5, net, &used()), Limit::NoneSeen);
        assert_eq!(limit(0.95, net, &used()), Limit::Client { busy: 0.95 });
        let engine = limit(0.95, Threading::InProcess, &used());
        assert_eq!(engine, Limit::Engine { busy: 0.95 });
        let mut full = used();
        full.servers[0].busiest_thread = Some(0.97);
        assert_eq!(limit(0.5, net, &full), Limit::ServerThread { pid: 7, busy: 0.97 });
        let mut full = used();
        full.servers[0].used = Some(process(3.9));
        assert_eq!(limit(0.5, net, &full), Limit::ServerProcessors { pid: 7, processors: 3.9 });
        let full = ResourceSummary { busy: 0.9, steal: 0.08, ..used() };
        assert_eq!(limit(0.5, net, &full), Limit::Machine { busy: 0.98 });
        let full = ResourceSummary { iowait: 0.2, ..used() };
        assert_eq!(limit(0.5, net, &full), Limit::Disk { waiting: 0.8 });
        let full = ResourceSummary { link: Some(0.93), ..used() };
        assert_eq!(limit(0.5, net, &full), Limit::Network { used: 0.93 });
    }

    #[test]
    fn limits_are_told_with_their_figure() {
        let text = Limit::ServerThread { pid: 7, busy: 0.97 }.text(|pid| format!("redis-{pid}"));
        assert_eq!(text, "limited by one core of redis-7: a thread worked 97 % of the time");
        assert!(Limit::NoneSeen.text(|_| String::new()).starts_with("no limit seen"));
    }
}
