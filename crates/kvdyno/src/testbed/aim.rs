//! Chooses the nodes of a fault, at the moment when it is due.

use kvdyno_core::workload::Random;
use kvdyno_core::workload::fault::{CutFrom, NodeFault, NodeSelector, Sides, Way};
use kvdyno_testbed::{NodeDescription, Role, TestbedError};

/// Names of nodes, each with its role in the deployment.
pub type Aimed = Vec<(String, Option<Role>)>;

/// Returns the nodes that are the targets now: none, or fewer than `count`, if there are no more.
pub fn choose<'a>(
    nodes: &'a [NodeDescription],
    aim: &NodeSelector,
    count: Option<u32>,
    random: &mut Random,
) -> Vec<&'a NodeDescription> {
    let mut meant = meant(nodes, aim);
    let described = matches!(
        aim,
        NodeSelector::Any
            | NodeSelector::Primary
            | NodeSelector::PrimaryOrAny
            | NodeSelector::Replica
    );
    let all = meant.len();
    let count = count.map_or(if described { 1 } else { all }, |count| count as usize);
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

fn meant<'a>(nodes: &'a [NodeDescription], aim: &NodeSelector) -> Vec<&'a NodeDescription> {
    let holds_data = |node: &&NodeDescription| node.running && node.role != Some(Role::Observer);
    let with = |role| nodes.iter().filter(holds_data).filter(move |n| n.role == Some(role));
    match aim {
        NodeSelector::Any | NodeSelector::All => nodes.iter().filter(holds_data).collect(),
        NodeSelector::Primary => with(Role::Primary).collect(),
        NodeSelector::PrimaryOrAny => match with(Role::Primary).collect::<Vec<_>>() {
            none if none.is_empty() => nodes.iter().filter(holds_data).collect(),
            primaries => primaries,
        },
        NodeSelector::Replica => with(Role::Replica).collect(),
        NodeSelector::Number(number) => nodes.get(*number as usize - 1).into_iter().collect(),
        NodeSelector::Name(name) => nodes.iter().filter(|node| node.name == *name).collect(),
        NodeSelector::Several(aims) => {
            let each: Vec<_> = aims.iter().map(|aim| meant(nodes, aim)).collect();
            // If one node is not there, none is chosen.
            if each.iter().any(Vec::is_empty) { Vec::new() } else { each.concat() }
        }
    }
}

/// Returns the beginning of the error that there are not enough nodes.
pub fn few(count: Option<u32>) -> String {
    match count {
        Some(count) if count > 1 => format!("fewer than {count} nodes are"),
        _ => "no node is".to_owned(),
    }
}

/// Describes the nodes that were wanted, as the end of that error.
pub fn wanted(aim: &NodeSelector) -> String {
    match aim {
        NodeSelector::Any | NodeSelector::All | NodeSelector::PrimaryOrAny => {
            "up with data".to_owned()
        }
        NodeSelector::Primary => "a primary".to_owned(),
        NodeSelector::Replica => "a replica".to_owned(),
        NodeSelector::Number(number) => format!("number {number}"),
        NodeSelector::Name(name) => format!("called {name}"),
        NodeSelector::Several(aims) => aims.iter().map(wanted).collect::<Vec<_>>().join(", none "),
    }
}

/// Returns the faults that a split into sides needs, each with the nodes of its side.
///
/// # Errors
/// [`TestbedError::Node`] if a side names a node that is not there.
pub fn sides(
    nodes: &[NodeDescription],
    sides: &Sides,
    way: Way,
) -> Result<Vec<(NodeFault, Aimed)>, TestbedError> {
    let sides = sides.lists();
    let mut orders = Vec::new();
    for (number, side) in sides.iter().enumerate() {
        let mut aimed = Aimed::new();
        for name in side.iter().filter(|name| *name != CutFrom::CLIENTS) {
            let Some(node) = nodes.iter().find(|node| node.name == *name) else {
                let known: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
                let advice = kvdyno_core::ground::hints::hint(name, &known);
                return Err(TestbedError::Node(format!("there is no node {name}; {advice}")));
            };
            aimed.push((node.name.clone(), node.role));
        }
        let others = sides.iter().enumerate().filter(|(other, _)| *other != number);
        let from: Vec<String> = others.flat_map(|(_, side)| side.clone()).collect();
        // A split in one direction is ordered from the first side alone: its nodes decide what they hear.
        let concerned = number == 0 || way == Way::Both;
        if concerned && !aimed.is_empty() {
            orders.push((NodeFault::Partition { from: CutFrom::Named(from), way }, aimed));
        }
    }
    Ok(orders)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn node(name: &str, role: Role, running: bool) -> NodeDescription {
        let (name, address) = (name.to_owned(), String::new());
        NodeDescription {
            name,
            address,
            role: Some(role),
            pid: None,
            running,
            ended_by_itself: None,
        }
    }

    fn nodes() -> [NodeDescription; 4] {
        [
            node("a", Role::Primary, true),
            node("b", Role::Replica, true),
            node("c", Role::Replica, false),
            node("d", Role::Observer, true),
        ]
    }

    #[test]
    fn aims_are_taken_at_nodes_that_run_and_hold_data() {
        let nodes = nodes();
        let mut random = Random::new(1, 0);
        let mut names = |aim: NodeSelector, count: Option<u32>| -> Vec<String> {
            choose(&nodes, &aim, count, &mut random).into_iter().map(|n| n.name.clone()).collect()
        };
        assert_eq!(names(NodeSelector::All, None), ["a", "b"]);
        assert_eq!(names(NodeSelector::Primary, None), ["a"]);
        assert_eq!(names(NodeSelector::Replica, None), ["b"]);
        assert_eq!(names(NodeSelector::PrimaryOrAny, None), ["a"]);
        assert_eq!(names(NodeSelector::Number(4), None), ["d"], "whoever is named is meant");
        let named = |name: &str| NodeSelector::Name(name.to_owned());
        assert_eq!(names(named("c"), None), ["c"]);
        assert_eq!(
            names(NodeSelector::Several(vec![NodeSelector::Number(2), named("a")]), None),
            ["b", "a"]
        );
        assert!(
            names(NodeSelector::Several(vec![NodeSelector::Number(2), named("x")]), None)
                .is_empty()
        );
        assert!(
            names(NodeSelector::Number(5), None).is_empty() && names(named("x"), None).is_empty()
        );
        let any: BTreeSet<String> = (0..50).flat_map(|_| names(NodeSelector::Any, None)).collect();
        assert!(any.into_iter().eq(["a", "b"]));
        assert_eq!(names(NodeSelector::Any, None).len(), 1);
        assert_eq!(names(NodeSelector::Any, Some(2)).len(), 2);
        assert_eq!(names(NodeSelector::Any, Some(3)).len(), 2, "there are no more");
        let first: BTreeSet<String> =
            (0..50).flat_map(|_| names(NodeSelector::All, Some(1))).collect();
        assert!(first.into_iter().eq(["a", "b"]));
    }

    fn cut(from: &[&str], way: Way) -> NodeFault {
        let names = from.iter().map(|&name| name.to_owned()).collect();
        NodeFault::Partition { from: CutFrom::Named(names), way }
    }

    #[test]
    fn each_side_is_cut_off_from_the_others() {
        let nodes = nodes();
        let side = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
        let split = |second: &[&str]| {
            Sides::new(vec![side(&["a", "clients"]), side(second)]).expect("two sides")
        };
        let orders = sides(&nodes, &split(&["b", "c"]), Way::Both).unwrap();
        let faults: Vec<&NodeFault> = orders.iter().map(|(fault, _)| fault).collect();
        assert_eq!(faults, [&cut(&["b", "c"], Way::Both), &cut(&["a", "clients"], Way::Both)]);
        assert_eq!(orders[0].1, [("a".to_owned(), Some(Role::Primary))]);
        let orders = sides(&nodes, &split(&["b", "c"]), Way::Out).unwrap();
        assert_eq!((orders.len(), &orders[0].0), (1, &cut(&["b", "c"], Way::Out)));
        let error = sides(&nodes, &split(&["b", "c", "e"]), Way::Out).unwrap_err().to_string();
        assert!(error.contains("there is no node e"), "{error}");
    }
}
