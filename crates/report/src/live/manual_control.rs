//! Actions of manual control on a run: groups whose rate may be changed, and faults that the testbed can suffer.

use kvdyno_core::ground::units::format_rate;
use kvdyno_core::workload::fault::{FaultKind, FieldForm, Needs};
use serde::Serialize;

use super::phase::LivePhase;
use crate::result::{StoreRun, TestbedResult};

/// Actions that viewers may choose from.
#[derive(Serialize)]
pub(super) struct OfferedActions {
    groups: Vec<SteeredGroup>,
    /// Faults that may be injected; none without a testbed, and while records are loaded.
    faults: Vec<FaultOffer>,
    /// Nodes that faults may hit: `any`, and the nodes by their names.
    nodes: Vec<String>,
}

/// A client group whose rate may be changed.
#[derive(Serialize)]
struct SteeredGroup {
    number: usize,
    name: String,
    /// Rate in the form in which users write it.
    rate: String,
}

/// A kind of fault, as viewers are offered it.
#[derive(Serialize)]
struct FaultOffer {
    word: &'static str,
    help: &'static str,
    /// True if nodes are named with the fault.
    aims: bool,
    fields: Vec<FieldOffer>,
}

/// A field of a fault.
#[derive(Serialize)]
struct FieldOffer {
    key: &'static str,
    help: &'static str,
    example: &'static str,
}

impl OfferedActions {
    /// Collects the actions for a phase of a store that is running.
    pub(super) fn of(phase: &LivePhase, store: Option<&StoreRun>) -> OfferedActions {
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
        OfferedActions {
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

/// Returns true if a testbed can suffer a fault, as far as the result tells; whether servers have an ability shows only
/// when they are asked.
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
    // Sides are lists, which are too long to type into one line.
    let fields = kind.fields.iter().filter(|field| !matches!(field.form, FieldForm::Sides));
    let fields =
        fields.map(|field| FieldOffer { key: field.key, help: field.help, example: field.example });
    let aims = kind.needs != Needs::Ability(kvdyno_core::workload::fault::Ability::Grow);
    FaultOffer { word: kind.word, help: kind.help, aims, fields: fields.collect() }
}
