//! What may be done to a run by hand: the groups whose rate may be changed, and what the testbed can suffer.

use kvdyno_core::ground::units::format_rate;
use kvdyno_core::workload::fault::{FaultKind, FieldForm, Needs};
use serde::Serialize;

use super::phase::LivePhase;
use crate::result::{StoreRun, TestbedResult};

/// What viewers may steer.
#[derive(Serialize)]
pub(super) struct ManualControl {
    groups: Vec<SteeredGroup>,
    /// Faults that may be done to its nodes; none without a testbed, and while records are loaded.
    faults: Vec<FaultOffer>,
    /// Nodes that they may befall: `any`, and the nodes by their names.
    nodes: Vec<String>,
}

/// A client group whose rate may be changed.
#[derive(Serialize)]
struct SteeredGroup {
    number: usize,
    name: String,
    /// As it is written.
    rate: String,
}

/// A kind of fault.
#[derive(Serialize)]
struct FaultOffer {
    word: &'static str,
    help: &'static str,
    /// Nodes are named with it.
    aims: bool,
    fields: Vec<FieldOffer>,
}

/// What is written with a fault.
#[derive(Serialize)]
struct FieldOffer {
    key: &'static str,
    help: &'static str,
    example: &'static str,
}

impl ManualControl {
    /// Of a phase that runs, of a store.
    pub(super) fn of(phase: &LivePhase, store: Option<&StoreRun>) -> ManualControl {
        let testbed = store.and_then(|run| run.testbed.as_ref());
        let testbed = testbed.filter(|testbed| testbed.is_made() && !phase.plan().load);
        let faults = testbed.map(|testbed| {
            FaultKind::ALL.into_iter().filter(|kind| can_suffer(testbed, kind.needs)).map(offer)
        });
        let nodes = testbed.map(|testbed| {
            let nodes = testbed.nodes.iter().chain(&testbed.later);
            let mut names = vec!["any".to_owned()];
            for node in nodes {
                if !names.contains(&node.name) {
                    names.push(node.name.clone());
                }
            }
            names
        });
        ManualControl {
            groups: groups(phase),
            faults: faults.into_iter().flatten().collect(),
            nodes: nodes.unwrap_or_default(),
        }
    }
}

fn groups(phase: &LivePhase) -> Vec<SteeredGroup> {
    let groups = phase.plan().groups.iter().enumerate();
    let open = groups.filter_map(|(number, group)| {
        let curve = group.arrival.curve()?;
        let last = group.changes.last().map(|change| format_rate(change.rate));
        let (name, rate) = (group.name.clone(), last.unwrap_or_else(|| curve.to_string()));
        Some(SteeredGroup { number, name, rate })
    });
    open.collect()
}

/// As far as a result tells of its testbed; whether servers have an ability is found out when they are asked.
fn can_suffer(testbed: &TestbedResult, needs: Needs) -> bool {
    let asked = |setting: &str| testbed.request.contains(setting);
    match needs {
        Needs::Nothing | Needs::Ability(_) => true,
        Needs::Network => asked("network=own"),
        Needs::Disk => testbed.disk.is_some(),
        Needs::FileSystem => testbed.has_file_systems(),
        Needs::Device => asked("device=fuse"),
    }
}

fn offer(kind: &'static FaultKind) -> FaultOffer {
    // Sides are lists, which nobody types into a line.
    let fields = kind.fields.iter().filter(|field| !matches!(field.form, FieldForm::Sides));
    let fields =
        fields.map(|field| FieldOffer { key: field.key, help: field.help, example: field.example });
    let aims = kind.needs != Needs::Ability(kvdyno_core::workload::fault::Ability::Grow);
    FaultOffer { word: kind.word, help: kind.help, aims, fields: fields.collect() }
}
