//! YCSB workload files: the core workloads, and files of users.

use std::time::Duration;

use crate::suite::{Overrides, Plan, Suite, builtin};
use crate::workload::{Arrival, Distribution, KeyForm, Kind, SizeModel, YcsbLaw};

const fn ycsb(law: YcsbLaw) -> Distribution {
    Distribution::Ycsb { law, records: 1_000 }
}

const fn zipfian(inserts: f64) -> Distribution {
    ycsb(YcsbLaw::Zipfian { inserts, operations: 1_000 })
}

fn plan(text: &str) -> Plan {
    let suite = Suite::parse_ycsb("dir/my load", text).unwrap_or_else(|error| panic!("{error}"));
    suite.plan(&Overrides::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn mistake(text: &str) -> String {
    Suite::parse_ycsb("w", text).expect_err("a mistake").to_string()
}

const LEAST: &str = "recordcount=1000\noperationcount=1000\n";

#[test]
fn the_core_workloads_are_ycsbs() {
    let latest = ycsb(YcsbLaw::Latest);
    for (name, mix, keys) in [
        ("ycsb-a", vec![(Kind::Get, 500), (Kind::Update, 500)], zipfian(0.0)),
        ("ycsb-b", vec![(Kind::Get, 950), (Kind::Update, 50)], zipfian(0.0)),
        ("ycsb-c", vec![(Kind::Get, 1_000)], zipfian(0.0)),
        ("ycsb-d", vec![(Kind::Insert, 50), (Kind::Get, 950)], latest),
        ("ycsb-e", vec![(Kind::Insert, 50), (Kind::Scan, 950)], zipfian(0.05)),
        ("ycsb-f", vec![(Kind::Get, 500), (Kind::ReadModifyWrite, 500)], zipfian(0.0)),
    ] {
        let plan = builtin(name).unwrap().suite().unwrap().plan(&Overrides::default()).unwrap();
        assert_eq!(plan.notes, Vec::<String>::new(), "{name}");
        let (load, run) = (&plan.phases[0], plan.phases.last().unwrap());
        assert!(load.load && !run.load);
        assert_eq!(load.groups[0].mix.parts, [(Kind::Insert, 1_000)]);
        assert_eq!(load.groups[0].requests, Some(1_000));
        let group = &run.groups[0];
        assert_eq!((&group.mix.parts, group.keys), (&mix, keys), "{name}");
        assert_eq!((group.requests, group.records), (Some(1_000), 1_000));
        assert_eq!(group.values.size, SizeModel::Fixed { size: 100 });
        assert_eq!((plan.dataset.fields, group.one_field, group.clients), (10, true, 1));
        if name == "ycsb-e" {
            assert_eq!(group.scan_length, SizeModel::Uniform { min: 1, max: 100 });
        }
        let inserts = mix.contains(&(Kind::Insert, 50));
        assert_eq!(plan.dataset.capacity, if inserts { 1_050 } else { 1_000 });
    }
}

#[test]
fn properties_become_settings() {
    let plan = plan(
        "# comment\n! another\n\
         recordcount = 5000\n operationcount: 70 \nthreadcount 16\n\
         readproportion=3\nupdateproportion=1\n\
         requestdistribution=hotspot\nhotspotdatafraction=0.1\nhotspotopnfraction=0.9\n\
         fieldcount=4\nfieldlength=80\nminfieldlength=20\nfieldlengthdistribution=uniform\n\
         writeallfields=true\nreadallfields=false\ninsertorder=ordered\nzeropadding=12\n\
         maxexecutiontime=\\\n  30\ntarget=500\nmeasurementtype=raw\nredis.host=h\ntable=t\n\
         recordcont=3\n",
    );
    assert_eq!(plan.suite, "my-load");
    let run = plan.phases.last().unwrap();
    let group = &run.groups[0];
    assert_eq!(group.mix.parts, [(Kind::Get, 750), (Kind::Update, 250)]);
    let law = YcsbLaw::Hotspot { records: 0.1, operations: 0.9 };
    assert_eq!(group.keys, Distribution::Ycsb { law, records: 5_000 });
    assert_eq!((group.requests, run.duration), (Some(70), Some(Duration::from_secs(30))));
    assert_eq!(group.arrival, Arrival::Constant { rate: 500.0 });
    assert_eq!((group.clients, group.one_field), (16, false));
    assert_eq!(plan.phases[0].groups[0].arrival, Arrival::Closed, "a load is not throttled");
    assert_eq!(group.values.size, SizeModel::Uniform { min: 20, max: 80 });
    assert_eq!((plan.dataset.fields, plan.dataset.capacity), (4, 5_000));
    assert_eq!((plan.dataset.key.form, plan.dataset.key.length), (KeyForm::Decimal, 16));
    for said in [
        "dir/my load:22: measurementtype is not needed here",
        "dir/my load:23: redis.host is not known and ignored",
        "dir/my load:24: table is not needed here",
        "dir/my load:25: recordcont is not known and ignored; did you mean `recordcount`?",
        "readallfields=false: reads bring all fields all the same",
        "proportions sum to 4: taken as weights, as YCSB does",
    ] {
        assert!(plan.notes.iter().any(|note| note == said), "{said}: {:#?}", plan.notes);
    }
}

#[test]
fn defaults_are_ycsbs() {
    let plan = plan(&format!("{LEAST}exponential.frac=0.5\nrequestdistribution=exponential"));
    let group = &plan.phases.last().unwrap().groups[0];
    assert_eq!(group.mix.parts, [(Kind::Get, 950), (Kind::Update, 50)]);
    assert_eq!(group.keys, ycsb(YcsbLaw::Exponential { percentile: 0.95, share: 0.5 }));
    assert_eq!(group.scan_length, SizeModel::Uniform { min: 1, max: 1_000 });
    assert_eq!((plan.dataset.key.form, plan.dataset.key.length), (KeyForm::Hash, 23));
}

#[test]
fn proportions_always_make_a_whole() {
    let thirds = "readproportion=1\nupdateproportion=1\ninsertproportion=1\n";
    let plan = plan(&format!("{LEAST}{thirds}"));
    let group = &plan.phases.last().unwrap().groups[0];
    assert_eq!(group.mix.parts.iter().map(|(_, part)| part).sum::<u16>(), 1_000);
    assert_eq!(group.mix.parts.len(), 3);
    assert!(plan.notes.contains(&"proportions are rounded to tenths of a per cent".to_owned()));
}

#[test]
fn wrong_values_name_their_line() {
    for (line, said) in [
        ("recordcount=many", "w:3:1: `recordcount` must be a whole number from 0, not many"),
        (
            "requestdistribution=zipfan",
            "w:3:1: `zipfan` is not a requestdistribution; did you mean `zipfian`?",
        ),
        (
            "fieldlengthdistribution=histogram",
            "w:3:1: fieldlengthdistribution=histogram is not supported; \
             supported are: constant, uniform, zipfian",
        ),
        ("  readproportion=-1", "w:3:3: `readproportion` must be a number from 0 to"),
        ("readallfields=perhaps", "w:3:1: `readallfields` must be true or false, not perhaps"),
        (
            "workload=site.ycsb.workloads.RestWorkload",
            "w:3:1: workload class `site.ycsb.workloads.RestWorkload` is not supported",
        ),
        ("rocksdb.dir=C:\\users", "w:3:1: `\\u` must be followed by four hexadecimal digits"),
        ("insertstart=500", "w:3:1: insertstart=500 loads only a part of the records"),
        ("fieldcount=0", "w:3:1: `fieldcount` must be 1 to 1000, not 0"),
        ("readproportion=0\nupdateproportion=0", "w:3:1: all proportions are 0"),
    ] {
        let error = mistake(&format!("{LEAST}{line}\n"));
        assert!(error.starts_with(said), "{error}");
    }
    assert!(mistake("operationcount=5").contains("lacks `recordcount`"));
    assert!(mistake("recordcount=5").contains("lacks `operationcount`"));
    let zero = mistake("recordcount=5\noperationcount=0");
    assert!(zero.contains("`operationcount` must be a whole number from 1, not 0"), "{zero}");
    let zero = mistake("recordcount=0\noperationcount=5");
    assert!(zero.contains("`recordcount` must be a whole number from 1, not 0"), "{zero}");
}

#[test]
fn set_works_on_workload_files() {
    let suite = Suite::parse_ycsb("w", LEAST).unwrap();
    let overrides = Overrides { set: vec!["run.keys=uniform".into()], ..Overrides::default() };
    let plan = suite.plan(&overrides).unwrap();
    assert_eq!(plan.phases.last().unwrap().groups[0].keys, Distribution::Uniform);
}

/// Sizes and lengths of scans are drawn by YCSB's laws, whatever overrides say of the rest.
#[test]
fn what_is_drawn_is_ycsbs() {
    let text = "recordcount=4000\noperationcount=2000\nrequestdistribution=zipfian\n\
                readproportion=0\nupdateproportion=0\nscanproportion=3\ninsertproportion=1\n\
                scanlengthdistribution=zipfian\nmaxscanlength=50\n\
                fieldlengthdistribution=zipfian\nfieldlength=80\nminfieldlength=20\n";
    let suite = Suite::parse_ycsb("w", text).unwrap();
    for (overrides, records, operations) in [
        (Overrides::default(), 4_000, 2_000),
        (Overrides { scale: Some(0.5), ..Overrides::default() }, 2_000, 1_000),
        (Overrides { requests: Some(70), ..Overrides::default() }, 4_000, 70),
        // Room for what the file expects, not for all that a store could take in that time.
        (
            Overrides { duration: Some(Duration::from_secs(60)), ..Overrides::default() },
            4_000,
            2_000,
        ),
    ] {
        let plan = suite.plan(&overrides).unwrap();
        for phase in plan.phases.iter().filter(|phase| !phase.load) {
            let group = &phase.groups[0];
            let law = YcsbLaw::Zipfian { inserts: 1.0, operations };
            assert_eq!(group.keys, Distribution::Ycsb { law, records }, "{}", phase.name);
            assert_eq!(group.scan_length, SizeModel::Zipfian { min: 1, max: 50 });
            assert_eq!(group.values.size, SizeModel::Zipfian { min: 20, max: 80 });
        }
    }
}

/// An even number of backslashes at the end continues no line: the mix is 10/90.
#[test]
fn backslashes_are_javas() {
    let text = "recordcount=1000\noperationcount=1000\nrocksdb.dir=C:\\\\data\\\\\n\
                readproportion=0.1\nupdateproportion=0.9\nfieldcount=1\n";
    let group = &plan(text).phases.pop().unwrap().groups[0];
    assert_eq!(group.mix.parts, [(Kind::Get, 100), (Kind::Update, 900)]);
}

/// Blanks at the end are part of a value. Where YCSB would refuse it, it is read and said; where YCSB
/// would take it for something else, so does kvdyno.
#[test]
fn blanks_at_the_end_mean_what_they_mean_to_ycsb() {
    let plan = plan(
        "recordcount=1000 \noperationcount=1000\nreadproportion=0.25 \nupdateproportion=0.75f\n\
         requestdistribution=latest\t\nwriteallfields=true \ninsertorder=hashed \ntable=t \n",
    );
    let group = &plan.phases.last().unwrap().groups[0];
    assert_eq!(group.mix.parts, [(Kind::Get, 250), (Kind::Update, 750)]);
    assert_eq!((group.keys, group.one_field), (ycsb(YcsbLaw::Latest), true));
    assert_eq!(plan.dataset.key.form, KeyForm::Decimal);
    let blank = |line: u32, key: &str, taken: &str| {
        format!("dir/my load:{line}: {key} has a blank at its end: YCSB {taken}")
    };
    let said = [
        blank(1, "recordcount", "itself refuses it"),
        blank(5, "requestdistribution", "itself refuses it"),
        blank(6, "writeallfields", "takes it for false"),
        blank(7, "insertorder", "takes it for ordered"),
        "dir/my load:8: table is not needed here".to_owned(),
    ];
    assert_eq!(plan.notes, said);
}

/// The bytes of a file are characters of ISO-8859-1 to Java: one that is no UTF-8 is read.
#[test]
fn a_file_need_not_be_utf8() {
    let file =
        std::env::temp_dir().join(format!("kvdyno-latin1-{}.properties", std::process::id()));
    std::fs::write(&file, b"# fa\xe7ade\nrecordcount=10\noperationcount=10\nhost.\xe9=1\n")
        .unwrap();
    let suite = Suite::find(&format!("ycsb:{}", file.display()));
    std::fs::remove_file(&file).unwrap();
    let notes = suite.unwrap().notes().join("\n");
    assert!(notes.ends_with(":4: host.\u{e9} is not known and ignored"), "{notes}");
}
