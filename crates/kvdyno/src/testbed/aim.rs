//! Who is meant by a fault, and what is to be done to them: decided when the fault is due.

use kvdyno_core::workload::{Aim, CutFrom, FaultKind, FaultPlan, NetworkFault, Random, Way};
use kvdyno_testbed::{Action, NodeDescription, Role, TestbedError};

/// Names of nodes, each with what it is to the others.
pub type Aimed = Vec<(String, Option<Role>)>;

/// The nodes that are meant now; none, or fewer than are to be, if there are no more.
pub fn choose<'a>(
    nodes: &'a [NodeDescription],
    fault: &FaultPlan,
    random: &mut Random,
) -> Vec<&'a NodeDescription> {
    let mut meant = meant(nodes, &fault.aim);
    let described = matches!(fault.aim, Aim::Any | Aim::Primary | Aim::PrimaryOrAny | Aim::Replica);
    let all = meant.len();
    let count = fault.count.map_or(if described { 1 } else { all }, |count| count as usize);
    // The first places of a shuffle (Fisher and Yates).
    for place in 0..count.min(all) {
        let from = place + (random.next_u64() % (all - place) as u64) as usize;
        if count < all {
            meant.swap(place, from);
        }
    }
    meant.truncate(count);
    meant
}

fn meant<'a>(nodes: &'a [NodeDescription], aim: &Aim) -> Vec<&'a NodeDescription> {
    let holds_data = |node: &&NodeDescription| node.running && node.role != Some(Role::Observer);
    let with = |role| nodes.iter().filter(holds_data).filter(move |n| n.role == Some(role));
    match aim {
        Aim::Any | Aim::All => nodes.iter().filter(holds_data).collect(),
        Aim::Primary => with(Role::Primary).collect(),
        Aim::PrimaryOrAny => match with(Role::Primary).collect::<Vec<_>>() {
            none if none.is_empty() => nodes.iter().filter(holds_data).collect(),
            primaries => primaries,
        },
        Aim::Replica => with(Role::Replica).collect(),
        Aim::Number(number) => nodes.get(*number as usize - 1).into_iter().collect(),
        Aim::Name(name) => nodes.iter().filter(|node| node.name == *name).collect(),
        Aim::Several(aims) => {
            let each: Vec<_> = aims.iter().map(|aim| meant(nodes, aim)).collect();
            // One that is not there makes the whole impossible.
            if each.iter().any(Vec::is_empty) { Vec::new() } else { each.concat() }
        }
    }
}

/// The beginning of the sentence that tells that there are not enough.
pub fn few(fault: &FaultPlan) -> String {
    match fault.count {
        Some(count) if count > 1 => format!("fewer than {count} nodes are"),
        _ => "no node is".to_owned(),
    }
}

/// Its end.
pub fn wanted(aim: &Aim) -> String {
    match aim {
        Aim::Any | Aim::All | Aim::PrimaryOrAny => "up with data".to_owned(),
        Aim::Primary => "a primary".to_owned(),
        Aim::Replica => "a replica".to_owned(),
        Aim::Number(number) => format!("number {number}"),
        Aim::Name(name) => format!("called {name}"),
        Aim::Several(aims) => aims.iter().map(wanted).collect::<Vec<_>>().join(", none "),
    }
}

/// What is done to the nodes `aimed` at.
pub fn action(fault: &FaultPlan, nodes: &[NodeDescription], aimed: &Aimed) -> Action {
    let NetworkFault { way, loss, bandwidth, delay, .. } = fault.network;
    match fault.kind {
        FaultKind::Kill => Action::Kill,
        FaultKind::Stop => Action::Stop,
        FaultKind::Pause => Action::Pause,
        FaultKind::Restart => Action::Restart,
        FaultKind::Remove | FaultKind::Add => Action::Remove,
        FaultKind::Rewrite => Action::Rewrite,
        FaultKind::Compact => Action::Compact,
        FaultKind::Partition => {
            Action::Partition { from: others(fault.network.from, nodes, aimed), way }
        }
        FaultKind::Lossy => Action::Lossy { share: loss.unwrap_or_default() },
        FaultKind::Slow => Action::Slow { bandwidth, delay },
        FaultKind::DiskFull => Action::FillDisk,
    }
}

/// From whom nodes are cut off; those that are aimed at together stay together.
fn others(from: CutFrom, nodes: &[NodeDescription], aimed: &Aimed) -> Vec<String> {
    let names = nodes.iter().map(|node| node.name.clone());
    let others = names.filter(|name| aimed.iter().all(|(node, _)| node != name));
    let clients = NetworkFault::CLIENTS.to_owned();
    match from {
        CutFrom::All => others.chain([clients]).collect(),
        CutFrom::Nodes => others.collect(),
        CutFrom::Clients => vec![clients],
    }
}

/// What a split into sides asks of each side's nodes.
///
/// # Errors
/// [`TestbedError::Node`] if a side names a node that is not there.
pub fn sides(
    nodes: &[NodeDescription],
    split: &NetworkFault,
) -> Result<Vec<(Action, Aimed)>, TestbedError> {
    let mut orders = Vec::new();
    for (number, side) in split.sides.iter().enumerate() {
        let mut aimed = Aimed::new();
        for name in side.iter().filter(|name| *name != NetworkFault::CLIENTS) {
            let Some(node) = nodes.iter().find(|node| node.name == *name) else {
                let known: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
                let advice = kvdyno_core::ground::hints::hint(name, &known);
                return Err(TestbedError::Node(format!("there is no node {name}; {advice}")));
            };
            aimed.push((node.name.clone(), node.role));
        }
        let others = split.sides.iter().enumerate().filter(|(other, _)| *other != number);
        let from: Vec<String> = others.flat_map(|(_, side)| side.clone()).collect();
        // One way is told from the first side; what it hears or not is decided at its nodes alone.
        let concerned = number == 0 || split.way == Way::Both;
        if concerned && !aimed.is_empty() {
            orders.push((Action::Partition { from, way: split.way }, aimed));
        }
    }
    Ok(orders)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;

    fn node(name: &str, role: Role, running: bool) -> NodeDescription {
        let (name, address) = (name.to_owned(), String::new());
        NodeDescription { name, address, role: Some(role), pid: None, running }
    }

    fn nodes() -> [NodeDescription; 4] {
        [
            node("a", Role::Primary, true),
            node("b", Role::Replica, true),
            node("c", Role::Replica, false),
            node("d", Role::Observer, true),
        ]
    }

    fn fault(kind: FaultKind, aim: Aim, count: Option<u32>) -> FaultPlan {
        let (at, network) = (Duration::ZERO, NetworkFault::default());
        FaultPlan { kind, aim, count, when: None, at, repair: None, every: None, network }
    }

    #[test]
    fn aims_are_taken_at_nodes_that_run_and_hold_data() {
        let nodes = nodes();
        let mut random = Random::new(1, 0);
        let mut names = |aim: Aim, count: Option<u32>| -> Vec<String> {
            let fault = fault(FaultKind::Kill, aim, count);
            choose(&nodes, &fault, &mut random).into_iter().map(|n| n.name.clone()).collect()
        };
        assert_eq!(names(Aim::All, None), ["a", "b"]);
        assert_eq!(names(Aim::Primary, None), ["a"]);
        assert_eq!(names(Aim::Replica, None), ["b"]);
        assert_eq!(names(Aim::PrimaryOrAny, None), ["a"]);
        assert_eq!(names(Aim::Number(4), None), ["d"], "whoever is named is meant");
        let named = |name: &str| Aim::Name(name.to_owned());
        assert_eq!(names(named("c"), None), ["c"]);
        assert_eq!(names(Aim::Several(vec![Aim::Number(2), named("a")]), None), ["b", "a"]);
        assert!(names(Aim::Several(vec![Aim::Number(2), named("x")]), None).is_empty());
        assert!(names(Aim::Number(5), None).is_empty() && names(named("x"), None).is_empty());
        let any: BTreeSet<String> = (0..50).flat_map(|_| names(Aim::Any, None)).collect();
        assert!(any.into_iter().eq(["a", "b"]));
        assert_eq!(names(Aim::Any, None).len(), 1);
        assert_eq!(names(Aim::Any, Some(2)).len(), 2);
        assert_eq!(names(Aim::Any, Some(3)).len(), 2, "there are no more");
        let first: BTreeSet<String> = (0..50).flat_map(|_| names(Aim::All, Some(1))).collect();
        assert!(first.into_iter().eq(["a", "b"]));
    }

    fn cut(from: &[&str], way: Way) -> Action {
        Action::Partition { from: from.iter().map(|&name| name.to_owned()).collect(), way }
    }

    #[test]
    fn who_is_cut_off_is_cut_off_from_all_others() {
        let nodes = nodes();
        let aimed: Aimed = vec![("a".to_owned(), None), ("c".to_owned(), None)];
        let mut plan = fault(FaultKind::Partition, Aim::Any, None);
        assert_eq!(action(&plan, &nodes, &aimed), cut(&["b", "d", "clients"], Way::Both));
        plan.network.from = CutFrom::Nodes;
        plan.network.way = Way::In;
        assert_eq!(action(&plan, &nodes, &aimed), cut(&["b", "d"], Way::In));
        plan.network.from = CutFrom::Clients;
        assert_eq!(action(&plan, &nodes, &aimed), cut(&["clients"], Way::In));
    }

    #[test]
    fn each_side_is_cut_off_from_the_others() {
        let nodes = nodes();
        let side = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
        let mut split = NetworkFault {
            sides: vec![side(&["a", "clients"]), side(&["b", "c"])],
            ..NetworkFault::default()
        };
        let orders = sides(&nodes, &split).unwrap();
        let actions: Vec<&Action> = orders.iter().map(|(action, _)| action).collect();
        assert_eq!(actions, [&cut(&["b", "c"], Way::Both), &cut(&["a", "clients"], Way::Both)]);
        assert_eq!(orders[0].1, [("a".to_owned(), Some(Role::Primary))]);
        split.way = Way::Out;
        let orders = sides(&nodes, &split).unwrap();
        assert_eq!((orders.len(), &orders[0].0), (1, &cut(&["b", "c"], Way::Out)));
        split.sides[1].push("e".to_owned());
        let error = sides(&nodes, &split).unwrap_err().to_string();
        assert!(error.contains("there is no node e"), "{error}");
    }
}
