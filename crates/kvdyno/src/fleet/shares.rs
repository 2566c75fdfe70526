//! The share of each agent in the operations of a closed phase, compared with the share that the key distribution
//! gives to its records. Each agent carries out the operations of its own records at its own speed. An agent that
//! gets less far in the numbers of the operations does too few of them: the records of the others have more
//! operations than was asked.

use std::collections::BTreeMap;

use kvdyno_core::load::is_dealt;
use kvdyno_core::workload::{Kind, PhasePlan};

use super::reads::ReadsFrom;

/// Fewest operations of a phase for which shares are reported: of fewer, those in flight at the end are too many.
const LEAST: u64 = 2_000;
/// Smallest displacement that is reported: chance moves up to this share.
const MUTE: f64 = 0.02;

/// One agent's work in each group's operations, by the group's number.
pub type GroupCourses = BTreeMap<u16, GroupCourse>;

/// One agent's work in one group's operations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GroupCourse {
    /// Sum over its lanes of the numbers of the operations that they reached.
    reached: u64,
    lanes: u64,
    reads: u64,
    writes: u64,
}

impl GroupCourse {
    /// Counts operations of this kind that have ended.
    pub fn count(&mut self, kind: Kind, ended: u64) {
        if kind.read_only() { self.reads += ended } else { self.writes += ended }
    }

    /// Enters the end of one of its lanes, which has given out no operation from `reached` on.
    pub fn reach(&mut self, reached: u64) {
        (self.reached, self.lanes) = (self.reached + reached, self.lanes + 1);
    }

    /// Returns the number of the operation that it reached, on average of its lanes.
    fn position(&self) -> f64 {
        self.reached as f64 / self.lanes.max(1) as f64
    }
}

/// Operations that went to other records than was asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Displacement {
    /// Share of the operations that went to other records.
    pub displaced: f64,
    /// Number of the agent that got furthest.
    pub ahead: usize,
    /// Number of the agent that got least far.
    pub behind: usize,
    /// Position of `ahead` over the position of `behind`.
    pub times: f64,
}

/// One agent's work in the operations that are bound to an agent by their record.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bound {
    /// Number of the operation that it reached.
    position: f64,
    /// Number of operations that it carried out.
    carried: u64,
}

/// Returns the displacement of the phase that `agents` carried, if it is large enough to be told.
pub fn displacement(
    phase: &PhasePlan,
    reads: ReadsFrom,
    agents: &[&GroupCourses],
) -> Option<Displacement> {
    // If each agent draws its own operations, none is bound to another's.
    if reads == ReadsFrom::Anywhere {
        return None;
    }
    let closed = (0_u16..).zip(&phase.groups).filter(|(_, group)| !group.arrival.is_open());
    let mut all = 0;
    let mut worst: Option<(f64, Displacement)> = None;
    let mut moved = 0.0;
    for (number, group) in closed {
        // Dealt reads are bound to no agent.
        let dealt = agents.len() > 1 && is_dealt(phase, group);
        let course = |agent: &&GroupCourses| agent.get(&number).copied().unwrap_or_default();
        let courses: Vec<GroupCourse> = agents.iter().map(course).collect();
        all += courses.iter().map(|course| course.reads + course.writes).sum::<u64>();
        let bound = courses.iter().map(|course| Bound {
            position: course.position(),
            carried: course.writes + if dealt { 0 } else { course.reads },
        });
        let Some((operations, found)) = displaced(&bound.collect::<Vec<_>>()) else { continue };
        moved += operations;
        if worst.is_none_or(|(most, _)| operations > most) {
            worst = Some((operations, found));
        }
    }
    let (_, found) = worst.filter(|_| all >= LEAST)?;
    let displaced = moved / all as f64;
    (displaced > MUTE).then_some(Displacement { displaced, ..found })
}

/// Returns the number of operations that went to other records than was asked, with the displacement; `None` if the
/// agents' figures do not tell.
fn displaced(agents: &[Bound]) -> Option<(f64, Displacement)> {
    let carried: u64 = agents.iter().map(|agent| agent.carried).sum();
    let reached = |agent: &Bound| agent.position > 0.0 && agent.carried > 0;
    let reached_agents = agents.iter().filter(|agent| reached(agent)).count();
    if reached_agents == 0 {
        return None;
    }
    // Operations of an agent's records for each operation number: what it did over how far it got. For an agent that
    // did nothing this is unknown, and the mean of the others is taken.
    let density = |agent: &Bound| agent.carried as f64 / agent.position;
    let mean = agents.iter().filter(|agent| reached(agent)).map(density).sum::<f64>()
        / reached_agents as f64;
    let density = |agent: &Bound| if reached(agent) { density(agent) } else { mean };
    let all: f64 = agents.iter().map(density).sum();
    let moved = agents.iter().map(|agent| {
        let asked = density(agent) / all * carried as f64;
        (agent.carried as f64 - asked).max(0.0)
    });
    let moved = moved.sum();
    let by_position = |(_, one): &(usize, &Bound), (_, other): &(usize, &Bound)| {
        one.position.total_cmp(&other.position)
    };
    let (ahead, most) = agents.iter().enumerate().max_by(by_position)?;
    let (behind, least) = agents.iter().enumerate().min_by(by_position)?;
    let times = most.position / least.position.max(1.0);
    Some((moved, Displacement { displaced: 0.0, ahead, behind, times }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kvdyno_core::verdict::{Level, Reason};
    use kvdyno_core::workload::GroupPlan;

    use super::*;

    fn agent(courses: &[(u64, u64)]) -> GroupCourses {
        let course = |&(reached, carried): &(u64, u64)| {
            let mut course = GroupCourse::default();
            course.count(Kind::Update, carried);
            // Two lanes, one as far ahead as the other is behind.
            course.reach(reached + 10);
            course.reach(reached - 10);
            course
        };
        (0..).zip(courses.iter().map(course)).collect()
    }

    fn phase(groups: usize) -> PhasePlan {
        let group = GroupPlan::plain("run", &[(Kind::Update, 1_000)], 100);
        PhasePlan::plain(0, "run", vec![group; groups], Duration::from_secs(1))
    }

    fn displacement_of(agents: &[GroupCourses], reads: ReadsFrom) -> Option<Displacement> {
        let agents: Vec<&GroupCourses> = agents.iter().collect();
        displacement(&phase(agents[0].len()), reads, &agents)
    }

    /// Keys are uniform, and one agent is 1.63 times as quick: 62 % of the operations go to half of the records.
    #[test]
    fn a_displacement_is_told_by_how_unequally_far_agents_got() {
        let agents = [agent(&[(124_000, 62_000)]), agent(&[(76_000, 38_000)])];
        let found = displacement_of(&agents, ReadsFrom::Own).unwrap();
        assert!((found.displaced - 0.12).abs() < 1e-3, "{found:?}");
        assert_eq!((found.ahead, found.behind), (0, 1));
        assert!((found.times - 1.6316).abs() < 1e-3, "{found:?}");
        let Displacement { displaced, times, .. } = found;
        let [ahead, behind] = ["agent-1 (m)", "agent-2 (m)"].map(str::to_owned);
        let reason = Reason::KeysSkewed { displaced, ahead, behind, times };
        assert_eq!((reason.name(), reason.level()), ("keys-skewed", Level::Invalid));
        let text = reason.text();
        assert!(text.starts_with("12.0 % of the operations went to other records"), "{text}");
        assert!(
            text.contains("agent-1 (m) got 1.63 times as far in them as agent-2 (m)"),
            "{text}"
        );
        assert_eq!(
            displacement_of(&agents, ReadsFrom::Anywhere),
            None,
            "nobody is bound to a record"
        );
    }

    /// Zipfian keys: the owner of the hottest one has a third of the operations, and all work equally quickly.
    #[test]
    fn an_owner_of_hot_keys_that_falls_behind_is_told() {
        let agents = [
            agent(&[(30_000, 10_000)]),
            agent(&[(60_000, 10_000)]),
            agent(&[(60_000, 10_000)]),
            agent(&[(60_000, 10_000)]),
            agent(&[(60_000, 10_000)]),
        ];
        let found = displacement_of(&agents, ReadsFrom::Own).unwrap();
        // A third was asked for, and a fifth was done.
        assert!((found.displaced - (1.0 / 3.0 - 0.2)).abs() < 1e-3, "{found:?}");
        assert_eq!((found.behind, found.times), (0, 2.0));
    }

    /// The owner of a hot key does more than the others, as it is asked to, and all get equally far.
    #[test]
    fn agents_that_get_equally_far_displace_nothing_however_unequal_their_shares() {
        let agents = [agent(&[(50_000, 30_000)]), agent(&[(50_500, 20_000)])];
        assert_eq!(displacement_of(&agents, ReadsFrom::Own), None);
        let few = [agent(&[(100, 62)]), agent(&[(50, 30)])];
        assert_eq!(displacement_of(&few, ReadsFrom::Own), None, "too few to tell");
        let none = [agent(&[(100_000, 50_000)]), agent(&[(10, 0)])];
        let found = displacement_of(&none, ReadsFrom::Own).unwrap();
        assert!((found.displaced - 0.5).abs() < 0.01, "{found:?}");
    }

    /// Dealt reads go to whichever agent is free, and tell nothing of the owner of their records.
    #[test]
    fn of_dealt_operations_the_writes_alone_are_bound_to_an_agent() {
        let group = GroupPlan::plain("run", &[(Kind::Get, 900), (Kind::Update, 100)], 100);
        let phase = PhasePlan::plain(0, "run", vec![group], Duration::from_secs(1));
        let agent = |reached, reads, writes| {
            let mut course = GroupCourse::default();
            course.count(Kind::Get, reads);
            course.count(Kind::Update, writes);
            course.reach(reached);
            GroupCourses::from([(0, course)])
        };
        let displacement_of = |agents: [GroupCourses; 2]| {
            displacement(&phase, ReadsFrom::Own, &agents.iter().collect::<Vec<_>>())
        };
        let even = [agent(100_000, 70_000, 5_000), agent(99_000, 20_000, 5_000)];
        assert_eq!(displacement_of(even), None);
        let behind = [agent(100_000, 70_000, 10_000), agent(20_000, 10_000, 2_000)];
        let found = displacement_of(behind).unwrap();
        // Half of 12,000 writes were asked of each, out of 92,000 operations.
        assert!((found.displaced - 4_000.0 / 92_000.0).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn groups_are_summed_up_and_open_ones_left_out() {
        let agents = [
            agent(&[(100_000, 62_000), (50_000, 50_000)]),
            agent(&[(61_290, 38_000), (50_000, 50_000)]),
        ];
        let found = displacement_of(&agents, ReadsFrom::Own).unwrap();
        assert!((found.displaced - 0.06).abs() < 1e-3, "of twice as many: {found:?}");
        let mut open = phase(2);
        for group in &mut open.groups {
            group.arrival = kvdyno_core::workload::Arrival::Constant { rate: 1_000.0 };
        }
        let courses: Vec<&GroupCourses> = agents.iter().collect();
        assert_eq!(displacement(&open, ReadsFrom::Own, &courses), None);
    }
}
