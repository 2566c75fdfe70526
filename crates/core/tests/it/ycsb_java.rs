//! YCSB's files beside YCSB's own code: keys, lengths of scans and of fields are drawn by the laws of its
//! core, and Java's properties are read as Java reads them. Needs a JDK (`java`), and Maven for the core's jar.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::ycsb::{
    Case, Counts, Golden, alike, cases, lengths, misfit, ours, rank_correlation, ranking, top_tenth,
};
use kvdyno_core::suite::properties;
use kvdyno_core::workload::Random;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/ycsb");
const CORE: &str = "site.ycsb:core:0.17.0";
const GOAL: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy";

/// Returns the path of YCSB's core, which is fetched once.
fn core() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ycsb-core");
    let jar = folder.join("core-0.17.0.jar");
    // The network may fail once.
    let fetched = jar.exists() || (0..3).any(|_| fetch_core(&folder));
    assert!(fetched, "Maven did not bring {CORE} in three tries");
    jar
}

/// Returns true if Maven brought YCSB's core into `folder`. It keeps what it needs for that in a folder of its own: Maven
/// 3.8 spoils a folder that two of its processes use at once, and testbeds are installed meanwhile.
fn fetch_core(folder: &Path) -> bool {
    let status = Command::new("mvn")
        .args(["-q", "-B", GOAL, &format!("-Dartifact={CORE}")])
        .arg(format!("-DoutputDirectory={}", folder.display()))
        .arg(format!("-Dmaven.repo.local={}", folder.join("maven").display()))
        .status();
    status.expect("this test needs Maven: install it, or leave out server-tests").success()
}

/// Runs a program of `tests/it/ycsb/` in one virtual machine, and returns the lines that it answers to `input`.
fn java(program: &str, jar: Option<&Path>, input: String) -> Vec<String> {
    let mut command = Command::new("java");
    if let Some(jar) = jar {
        command.arg("-cp").arg(jar);
    }
    let mut child = command
        .args(["-Xmx1g", &format!("{FOLDER}/{program}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test needs a JDK: install one, or leave out the feature server-tests");
    let mut stdin = child.stdin.take().unwrap();
    let writing = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap().unwrap();
    assert!(output.status.success(), "{program} failed; what it said is above");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Counts of YCSB's draws for each of `cases`.
fn theirs(cases: &[&Case]) -> Vec<Counts> {
    let input: String = cases
        .iter()
        .map(|case| format!("{}\n{}end\n", crate::ycsb::OPERATIONS, case.text))
        .collect();
    let lines = java("Draws.java", Some(&core()), input);
    let numbers = |line: &String| -> Vec<u64> {
        let mut counts: Vec<u64> = line.split_whitespace().map(|n| n.parse().unwrap()).collect();
        counts.truncate(counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1));
        counts
    };
    let four = |four: &[String]| Counts {
        records: numbers(&four[0]),
        ages: numbers(&four[1]),
        scans: numbers(&four[2]),
        fields: numbers(&four[3]),
    };
    lines.chunks(4).map(four).collect()
}

#[test]
fn keys_are_drawn_as_ycsb_draws_them() {
    let cases = cases();
    let twice: Vec<&Case> = cases.iter().flat_map(|case| [case, case]).collect();
    let samples = theirs(&twice);
    let mut golden = String::new();
    for (case, theirs) in cases.iter().zip(samples.chunks(2)) {
        let name = &case.name;
        let [a, b] = [theirs[0].compared(case), theirs[1].compared(case)];
        let own = ours(case).compared(case);
        Golden::of(name, &a, &b).write(&mut golden);
        // YCSB agrees with itself, and kvdyno with it.
        for (whose, counts) in [("YCSB's second sample", &b), ("kvdyno", &own)] {
            let misfit = misfit(&a, counts);
            assert!(misfit < 1.0, "{name}: {whose} is off, chi-square {misfit} times the bound");
            for place in ranking(&a).into_iter().take(crate::ycsb::HOTTEST) {
                let (theirs, n) = (a[place], counts[place]);
                assert!(alike(theirs, n), "{name}: {n} of {place} by {whose}, {theirs} by YCSB");
            }
        }
        let order = ranking(&a);
        let (share, theirs) = (top_tenth(&own, &order), top_tenth(&b, &order));
        let error = 5.5 * (2.0 * share * (1.0 - share) / crate::ycsb::OPERATIONS as f64).sqrt();
        assert!((share - theirs).abs() < error, "{name}: top tenth {share} for {theirs}");
        let theirs = rank_correlation(&a, &b);
        let correlation = rank_correlation(&a, &own);
        let error = 6.0 * (1.0 - theirs * theirs).max(0.001) / (a.len() as f64).sqrt() + 0.001;
        assert!((correlation - theirs).abs() < error, "{name}: {correlation} for {theirs}");
        println!("{name}: rank correlation {correlation:.4} ({theirs:.4} of YCSB with itself)");
    }
    if std::env::var_os("KVDYNO_RENEW").is_some() {
        std::fs::write(format!("{FOLDER}/golden.txt"), golden).unwrap();
    }
}

#[test]
fn lengths_are_drawn_as_ycsb_draws_them() {
    let case = lengths();
    let theirs = theirs(&[&case]).pop().unwrap();
    let own = ours(&case);
    for (what, a, b) in
        [("scans", &theirs.scans, &own.scans), ("fields", &theirs.fields, &own.fields)]
    {
        assert_eq!((a.len(), first(a)), (b.len(), first(b)), "{what}");
        let misfit = misfit(a, b);
        assert!(misfit < 1.0, "{what}: chi-square is {misfit} times the bound");
    }
}

fn first(counts: &[u64]) -> Option<usize> {
    counts.iter().position(|count| *count > 0)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Formats the entries that kvdyno reads as the Java program formats those that Java reads.
fn entries(bytes: &[u8]) -> String {
    let Ok(list) = properties::parse(&properties::decode(bytes)) else {
        return "refused".to_owned();
    };
    let last: BTreeMap<String, String> = list.into_iter().map(|p| (p.key, p.value)).collect();
    let digits = |text: &str| hexadecimal(text.as_bytes());
    let mut entries: Vec<String> =
        last.iter().map(|(key, value)| format!("{}={}", digits(key), digits(value))).collect();
    entries.sort();
    entries.join(" ")
}

/// Makes a file of pieces that make a difference in such files, in any order.
fn file(random: &mut Random) -> Vec<u8> {
    const PIECES: [&[u8]; 36] = [
        b"a",
        b"key",
        b"1",
        b"0.5",
        b"=",
        b"=",
        b":",
        b" ",
        b" ",
        b"\t",
        b"\x0c",
        b"\n",
        b"\n",
        b"\n",
        b"\r\n",
        b"\r",
        b"\\",
        b"\\",
        b"\\\\",
        b"\\\n",
        b"\\\r\n",
        b"#",
        b"!",
        b"\\u0041",
        b"\\u00e9",
        b"\\ud83d\\ude00",
        b"\\ud83d",
        b"\\u12",
        b"\\n",
        b"\\t",
        b"\\=",
        b"\xe9",
        b"\x85",
        b"\xa0",
        b"\x00",
        b"\\u\n0041",
    ];
    let pieces = random.below(24);
    (0..pieces).flat_map(|_| PIECES[random.below(36) as usize].to_vec()).collect()
}

#[test]
fn properties_are_read_as_java_reads_them() {
    let mut files: Vec<Vec<u8>> = (0..40_000).map(|n| file(&mut Random::new(17, n))).collect();
    files.push(b"rocksdb.dir=C:\\\\data\\\\\nreadproportion=0.1\n".to_vec());
    files.push(b"a=1\\".to_vec());
    let input = files.iter().map(|file| hexadecimal(file) + "\n").collect();
    let answers = java("Entries.java", None, input);
    assert_eq!(answers.len(), files.len());
    for (file, answer) in files.iter().zip(&answers) {
        let text = String::from_utf8_lossy(file);
        assert_eq!(&entries(file), answer, "{text:?}: kvdyno's, then Java's");
    }
    // The texts reach what they are to reach.
    let refused = answers.iter().filter(|answer| *answer == "refused").count();
    assert!((1_000..30_000).contains(&refused), "{refused} refused");
}
