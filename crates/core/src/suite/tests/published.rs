//! The published runs: phases and figures are those of the publications.

use crate::suite::{Overrides, Plan, PublishedRow, builtin};
use crate::workload::{Distribution, KeyForm, Kind, SizeModel};

fn plan(name: &str) -> Plan {
    builtin(name).unwrap().suite().unwrap().plan(&Overrides::default()).unwrap()
}

fn rows(plan: &Plan, store: &str) -> Vec<PublishedRow> {
    plan.published.iter().find(|published| published.store == store).unwrap().rows.clone()
}

fn sum(rows: &[PublishedRow], figure: impl Fn(&PublishedRow) -> Option<f64>) -> f64 {
    rows.iter().filter_map(figure).sum()
}

#[test]
fn amesar_2011_has_its_twelve_rows() {
    let plan = plan("amesar-2011");
    let labels: Vec<&str> = plan.phases.iter().map(|phase| phase.label.as_str()).collect();
    assert_eq!(
        labels,
        ["Put", "Get", "Get", "Get", "Put", "Put", "Get", "Get", "PutGet", "Get", "Get", "Get"]
    );
    let clients: Vec<u32> = plan.phases.iter().map(|phase| phase.groups[0].clients).collect();
    assert_eq!(clients, [20, 20, 20, 50, 20, 20, 20, 20, 20, 20, 20, 50]);
    for phase in &plan.phases {
        let group = &phase.groups[0];
        assert_eq!(group.requests, Some(10_000_000));
        assert!(!phase.warmup && phase.duration.is_none() && phase.verify);
    }
    let puts = [
        (0, Kind::Insert, 1776),
        (4, Kind::Update, 1812),
        (5, Kind::Update, 1846),
        (8, Kind::PutGet, 1861),
    ];
    for (index, kind, seed) in puts {
        let group = &plan.phases[index].groups[0];
        assert_eq!(group.mix.parts, [(kind, 1_000)]);
        assert_eq!(group.values.seed, Some(seed));
        let size = SizeModel::JavaUniform { min: 100, max: 1_899, seed: seed as i64 };
        assert_eq!(group.values.size, size);
    }
    assert_eq!((plan.dataset.key.form, plan.dataset.key.length), (KeyForm::Hash, 32));
    assert_eq!(plan.dataset.capacity, 10_000_000);
    // Puts 2 and 3 as the comment on the published results has it.
    let inserts = ["put-2.mix=insert", "put-3.mix=insert"].map(str::to_owned).to_vec();
    let overrides = Overrides { set: inserts, ..Overrides::default() };
    let plan = builtin("amesar-2011").unwrap().suite().unwrap().plan(&overrides).unwrap();
    assert_eq!(plan.dataset.capacity, 30_000_000);
    assert_eq!(plan.phases[5].groups[0].insert_first, 20_000_000);
    assert_eq!(plan.phases[6].groups[0].records, 30_000_000);
}

#[test]
fn amesar_2011_has_both_tables() {
    let plan = plan("amesar-2011");
    let (mongodb, cassandra) = (rows(&plan, "mongodb"), rows(&plan, "cassandra"));
    for rows in [&mongodb, &cassandra] {
        let names: Vec<&str> = rows.iter().map(|row| row.phase.as_str()).collect();
        let phases: Vec<&str> = plan.phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(names, phases);
        for (row, phase) in rows.iter().zip(&plan.phases) {
            assert_eq!(row.threads, Some(f64::from(phase.groups[0].clients)));
            let writes = phase.groups[0].values.seed.map(|seed| seed as f64);
            assert_eq!(row.value_seed, writes);
            assert_eq!((row.err, row.fail), (Some(0.0), Some(0.0)));
        }
    }
    // Sums over the published tables, column by column.
    let sums = |rows: &[PublishedRow]| {
        [
            sum(rows, |r| r.rate),
            sum(rows, |r| r.millis),
            sum(rows, |r| r.p50),
            sum(rows, |r| r.p90),
            sum(rows, |r| r.p99),
            sum(rows, |r| r.p99_5),
            sum(rows, |r| r.p99_9),
            sum(rows, |r| r.max),
            (sum(rows, |r| r.mean) * 1e3).round() / 1e3,
        ]
    };
    assert_eq!(sums(&mongodb), MONGODB_SUMS);
    assert_eq!(sums(&cassandra), CASSANDRA_SUMS);
    let [first, .., last] = &mongodb[..] else { panic!() };
    assert_eq!((first.rate, first.millis), (Some(2_114.0), Some(4_729_454.0)));
    assert_eq!((first.p99_9, first.max, first.mean), (Some(1_576.0), Some(36_232.0), Some(9.442)));
    assert_eq!((last.p90, last.p99, last.p99_5), (Some(34.0), Some(112.0), Some(166.0)));
    assert_eq!(cassandra[4].max, Some(174_614.0));
    assert_eq!(cassandra[8].max, Some(456_321.0));
    assert_eq!((cassandra[9].rate, cassandra[9].millis), (Some(210.0), Some(47_730_677.0)));
    assert_eq!((cassandra[11].p50, cassandra[11].mean), (Some(175.0), Some(200.751)));
}

/// Sums of the published columns from requests a second to mean.
const MONGODB_SUMS: [f64; 9] =
    [31_403.0, 52_229_280.0, 33.0, 212.0, 555.0, 1_192.0, 13_364.0, 161_604.0, 124.017];

/// Sums of the published columns from requests a second to mean.
const CASSANDRA_SUMS: [f64; 9] =
    [24_796.0, 251_006_912.0, 472.0, 1_158.0, 2_736.0, 3_873.0, 12_954.0, 1_004_051.0, 633.696];

#[test]
fn aws_2014_inserts_before_each_test() {
    let plan = plan("aws-2014");
    let measured: Vec<_> = plan.phases.iter().filter(|phase| !phase.warmup).collect();
    let does: Vec<_> = measured.iter().map(|p| p.groups[0].mix.parts.clone()).collect();
    assert_eq!(
        does,
        [
            vec![(Kind::Insert, 1_000)],
            vec![(Kind::Get, 500), (Kind::Update, 500)],
            vec![(Kind::Update, 1_000)],
            vec![(Kind::Get, 800), (Kind::Update, 200)],
            vec![(Kind::Update, 1_000)],
            vec![(Kind::Get, 1_000)],
        ]
    );
    for phase in measured {
        let group = &phase.groups[0];
        assert_eq!(group.clients, 4 * 90);
        assert_eq!(group.values.size, SizeModel::Fixed { size: 100 });
        if phase.label == "Insert" {
            assert_eq!(group.requests, Some(10_000_000));
            assert!(group.keys == Distribution::Sequential || group.mix.parts[0].0.inserts());
        }
    }
    assert_eq!(plan.dataset.capacity, 10_000_000);
    assert_eq!(rows(&plan, "aerospike")[0].rate, Some(1e6));
    assert_eq!(rows(&plan, "redis")[0].rate, Some(1e6));
}

#[test]
fn gce_2015_has_small_records_of_three_fields() {
    let plan = plan("gce-2015");
    assert_eq!((plan.dataset.fields, plan.dataset.key.length), (3, 20));
    assert_eq!(plan.dataset.capacity, 10_000_000);
    let labels: Vec<_> =
        plan.phases.iter().filter(|p| !p.warmup).map(|p| p.label.as_str()).collect();
    assert_eq!(labels, ["Insert", "Read", "Write"]);
    for group in plan.phases.iter().flat_map(|phase| &phase.groups) {
        assert_eq!((group.clients, group.pipeline), (20 * 256, 1));
        assert_eq!(group.values.size, SizeModel::Fixed { size: 50 });
    }
    let published = rows(&plan, "aerospike");
    assert_eq!((published[0].rate, published[1].rate), (Some(4e6), Some(1e6)));
}
