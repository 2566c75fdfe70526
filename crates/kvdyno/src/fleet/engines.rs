//! The role in a run of a process that an engine started on many machines with one command: a pure function of the
//! variables that the engine gives each of its processes. Rank 0 conducts, the others are agents.

use std::fmt;

use super::token::TOKEN_VARIABLE;

/// Port at which agents join rank 0, unless the user or the engine says otherwise.
const PORT: u16 = 7_411;
/// First of the ports for jobs of Slurm, which runs several jobs on a machine: each has a port of its own.
const SLURM_PORTS: u16 = 20_000;
/// Number of those ports; from 32768 on the system gives ports away itself.
const SLURM_PORTS_COUNT: u32 = 10_000;

/// An engine that starts the same command on several machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// `mpirun` of Open MPI.
    OpenMpi,
    /// SkyPilot's `sky launch --num-nodes`.
    SkyPilot,
    /// A Kubernetes Job whose `completionMode` is `Indexed`.
    Kubernetes,
    /// Slurm's `srun`.
    Slurm,
    /// Anything that sets kvdyno's own variables.
    Own,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Engine::OpenMpi => "Open MPI",
            Engine::SkyPilot => "SkyPilot",
            Engine::Kubernetes => "Kubernetes",
            Engine::Slurm => "Slurm",
            Engine::Own => "whoever set KVDYNO_RANK",
        })
    }
}

impl Engine {
    /// Describes how the token comes to the engine's processes.
    pub fn carries_token(self) -> &'static str {
        match self {
            Engine::OpenMpi => "`mpirun -x KVDYNO_TOKEN` carries it",
            Engine::SkyPilot => "`sky launch --secret KVDYNO_TOKEN` carries it",
            Engine::Kubernetes => "a Secret carries it (fleet/kubernetes)",
            Engine::Slurm => "srun carries it",
            Engine::Own => "each process must have it",
        }
    }
}

/// Role of a process in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineRole {
    /// It plans the run, gathers what agents measure, and judges.
    Conductor {
        /// Number of processes that join it.
        others: u32,
        /// Address at which it listens, HOST:PORT.
        listen: String,
    },
    /// It carries load for the conductor at this address, HOST:PORT.
    Agent(String),
}

/// A process among those that an engine started.
struct Place {
    rank: u32,
    count: u32,
    /// Host of rank 0 and the port at which it listens, if the engine tells.
    first: Option<(String, u16)>,
}

type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;
type Found = Option<Result<Place, String>>;
type Reading = fn(Variables<'_>) -> Found;

/// Each engine with the function that reads its variables. The engine nearest to the process comes first: `mpirun`
/// may run in a job of Slurm, SkyPilot in a pod.
const ENGINES: [(Engine, Reading); 5] = [
    (Engine::Own, own),
    (Engine::OpenMpi, open_mpi),
    (Engine::SkyPilot, sky_pilot),
    (Engine::Kubernetes, kubernetes),
    (Engine::Slurm, slurm),
];

/// Returns the role of this process; `conductor` is the address of rank 0 as the user gives it, HOST:PORT.
///
/// # Errors
/// In one line, if no engine started it, or if the address of rank 0 remains unknown.
pub fn role(
    variables: Variables<'_>,
    conductor: Option<&str>,
) -> Result<(Engine, EngineRole), String> {
    let found = ENGINES.iter().find_map(|(engine, read)| Some((*engine, read(variables)?)));
    let Some((engine, place)) = found else {
        return Err(
            "--agents auto: no variables of Slurm, Open MPI, Kubernetes or SkyPilot are here; start kvdyno with \
             one of them, or set KVDYNO_RANK and KVDYNO_COUNT (docs/FLEET.md)"
                .to_owned(),
        );
    };
    let Place { rank, count, first } = place?;
    if count < 2 {
        return Err(
            "--agents auto: one process alone has nobody to conduct; start 2 or more, or leave \
                    --agents out"
                .to_owned(),
        );
    }
    if rank >= count {
        return Err(format!(
            "--agents auto: rank {rank} is not below the count, {count}; correct both"
        ));
    }
    let first = match conductor {
        Some(address) => Some(host_and_port(address)?),
        None => first,
    };
    let (host, port) = first.ok_or_else(|| {
        format!(
            "--agents auto: {engine} does not tell on which machine rank 0 is; add --conductor HOST:PORT, \
             the first machine's"
        )
    })?;
    if variables(TOKEN_VARIABLE).is_none() {
        return Err(format!(
            "{TOKEN_VARIABLE} is not set: run `export {TOKEN_VARIABLE}=$(openssl rand -hex 16)` before the start; {}",
            engine.carries_token()
        ));
    }
    Ok((
        engine,
        if rank == 0 {
            EngineRole::Conductor {
                others: count - 1,
                listen: format!("{}:{port}", listening_for(&host)),
            }
        } else {
            EngineRole::Agent(format!("{host}:{port}"))
        },
    ))
}

/// Returns the address to listen at so that `host` is reached: only loopback, if that is `host`, for no other machine
/// needs it.
fn listening_for(host: &str) -> &'static str {
    match host {
        "localhost" | "127.0.0.1" => "127.0.0.1",
        host if host.starts_with('[') => "[::]",
        _ => "0.0.0.0",
    }
}

fn host_and_port(address: &str) -> Result<(String, u16), String> {
    let parts = address.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    match parts {
        Some((host, port)) if !host.is_empty() && port > 0 => Ok((host.to_owned(), port)),
        _ => Err(format!("--conductor {address}: write HOST:PORT, such as node-1:{PORT}")),
    }
}

fn own(variables: Variables<'_>) -> Found {
    let rank = variables("KVDYNO_RANK")?;
    Some(place(("KVDYNO_RANK", rank), "KVDYNO_COUNT", variables, None))
}

fn open_mpi(variables: Variables<'_>) -> Found {
    let rank = variables("OMPI_COMM_WORLD_RANK")?;
    let size = variables("OMPI_COMM_WORLD_SIZE");
    let one_machine = size.is_some() && size == variables("OMPI_COMM_WORLD_LOCAL_SIZE");
    let first = one_machine.then(|| ("127.0.0.1".to_owned(), PORT));
    Some(place(("OMPI_COMM_WORLD_RANK", rank), "OMPI_COMM_WORLD_SIZE", variables, first))
}

fn sky_pilot(variables: Variables<'_>) -> Found {
    let rank = variables("SKYPILOT_NODE_RANK")?;
    let addresses = variables("SKYPILOT_NODE_IPS").unwrap_or_default();
    let first = addresses.lines().map(str::trim).find(|line| !line.is_empty());
    let first = first.map(|host| (host.to_owned(), PORT));
    Some(place(("SKYPILOT_NODE_RANK", rank), "SKYPILOT_NUM_NODES", variables, first))
}

/// Reads the variables of Kubernetes. It tells a job's pods their index, not their number: the manifest sets that.
fn kubernetes(variables: Variables<'_>) -> Found {
    let rank = variables("JOB_COMPLETION_INDEX")?;
    Some(place(("JOB_COMPLETION_INDEX", rank), "KVDYNO_COUNT", variables, None))
}

fn slurm(variables: Variables<'_>) -> Found {
    let job = variables("SLURM_JOB_ID")?;
    let Some(rank) = variables("SLURM_STEP_NUM_TASKS").and_then(|_| variables("SLURM_PROCID"))
    else {
        return Some(Err(
            "--agents auto: this is the script of a job of Slurm, not one of its tasks; write \
                         srun before kvdyno"
                .to_owned(),
        ));
    };
    // Otherwise rank 0 is on the first of the step's machines.
    let arbitrary = variables("SLURM_DISTRIBUTION").is_some_and(|how| how.contains("arbitrary"));
    let list = variables("SLURM_STEP_NODELIST").filter(|_| !arbitrary);
    let number = |text: Option<String>| text.and_then(|text| text.parse().ok()).unwrap_or(0_u32);
    let step = number(variables("SLURM_STEP_ID"));
    let own = number(Some(job)).wrapping_mul(16).wrapping_add(step) % SLURM_PORTS_COUNT;
    let first = list.map(|list| (first_host(&list), SLURM_PORTS + own as u16));
    Some(place(("SLURM_PROCID", rank), "SLURM_STEP_NUM_TASKS", variables, first))
}

/// Returns the first host of a list as Slurm writes it: `rack[07-12,15],login` begins with `rack07`.
fn first_host(list: &str) -> String {
    let end = |text: &str, ends: &[char]| text.find(ends).unwrap_or(text.len());
    let (mut host, mut rest) = (String::new(), list);
    loop {
        let (plain, more) = rest.split_at(end(rest, &['[', ',']));
        host.push_str(plain);
        let Some(inside) = more.strip_prefix('[') else { return host };
        let (range, after) = inside.split_at(end(inside, &[']']));
        host.push_str(&range[..end(range, &['-', ','])]);
        rest = after.strip_prefix(']').unwrap_or_default();
    }
}

fn place(
    (rank_variable, rank): (&str, String),
    count_variable: &str,
    variables: Variables<'_>,
    first: Option<(String, u16)>,
) -> Result<Place, String> {
    let number = |name: &str, text: &str| {
        text.trim()
            .parse::<u32>()
            .map_err(|_| format!("--agents auto: {name} is {text:?}, not a number; set it anew"))
    };
    let count = variables(count_variable).ok_or_else(|| {
        format!("--agents auto: {rank_variable} is set and {count_variable} is not; set it to the number of processes")
    })?;
    let (rank, count) = (number(rank_variable, &rank)?, number(count_variable, &count)?);
    Ok(Place { rank, count, first })
}

#[cfg(test)]
mod tests;
