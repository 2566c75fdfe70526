//! Plug-ins are built here with the C compiler and loaded: the worked example is a store like any
//! other, and one that breaks the contract of `kvdyno.h` ends in an error that says how.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{drive, run, whole};
use kvdyno_core::store::{
    Answer, Certainty, Client, Consistency, Durability, ErrorClass, Promise, Reading, RequestError,
    Rows, Store,
};
use kvdyno_stores::conformance::{ConformanceFinding, conformance, reopening};
use kvdyno_stores::plugin::PluginStore;
use kvdyno_stores::{StoreError, StoreUrl};
use tempfile::TempDir;

/// Builds a plug-in as docs/stores/plugin.md tells to, every warning an error.
fn build(source: &str, more: &[&str]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("it.so");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC", "-I"])
        .arg(here.join("plugin"))
        .arg("-o")
        .args([&library, &here.join(source)])
        .args(more)
        .output()
        .unwrap_or_else(|error| panic!("cc: {error}; apt-get install gcc libc6-dev"));
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{said}; is libsqlite3-dev installed?");
    (folder, library)
}

fn open(library: &Path, options: &str) -> Result<PluginStore, StoreError> {
    let url = format!("plugin:{}?{options}", library.display());
    PluginStore::open(&mut StoreUrl::parse(&url).unwrap())
}

#[test]
fn the_example_conforms_and_keeps_its_records() {
    let (folder, library) = build("plugin/sqlite.c", &["-lsqlite3"]);
    let store = open(&library, "durability=none").unwrap();
    let report = conformance(&store).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(report.findings.contains(&("scan", ConformanceFinding::Kept)), "{report}");
    let records = folder.path().join("records");
    let options = format!("durability=process&folder={}", records.display());
    reopening(|| open(&library, &options).unwrap()).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(records.join("kvdyno.sqlite").exists());
}

#[test]
fn the_example_declares_what_it_keeps() {
    let (_folder, library) = build("plugin/sqlite.c", &["-lsqlite3"]);
    for (asked, kept) in [
        ("power", Durability::PowerLoss),
        ("process", Durability::ProcessKill),
        ("none", Durability::ProcessKill),
    ] {
        let store = open(&library, &format!("durability={asked}")).unwrap();
        let profile = run(store.profile()).unwrap();
        assert_eq!(profile.store, "sqlite");
        assert!(profile.version.is_some_and(|version| version.starts_with("3.")));
        assert_eq!(profile.durability, Promise::declared(kept), "{asked}");
        assert_eq!(profile.consistency, Promise::declared(Consistency::Linearizable));
    }
    // What stands in `config` is run: here it is wrong, and the plug-in's own words say so.
    let error = open(&library, "durability=none&config=PRAGMA nonsense nonsense").err().unwrap();
    assert!(error.to_string().contains("syntax error"), "{error}");
}

#[test]
fn errors_of_the_example_keep_their_kind_and_certainty() {
    let (_folder, library) = build("plugin/sqlite.c", &["-lsqlite3"]);
    // Pages of 4 KiB, of which a few are all that there may be.
    let options = "durability=none&config=PRAGMA max_page_count=20";
    let store = open(&library, options).unwrap();
    run(async {
        let mut connection = store.connect(1).await.unwrap();
        let mut error = None;
        for number in 0..100 {
            let key = format!("key{number:05}");
            let put = whole(key.as_bytes(), &[7; 4000], None);
            error = connection.clients[0].put(put).await.err();
            if error.is_some() {
                break;
            }
        }
        let error = error.expect("100 values of 4 kB fit into 80 kB");
        assert_eq!((error.certainty, error.class), (Certainty::Failed, ErrorClass::Full));
        assert!(error.message.contains("full"), "{error}");
    });
}

#[test]
fn a_file_that_is_no_plugin_is_refused_in_one_line() {
    let (folder, library) = build("tests/it/plugin/broken.c", &["-DABI=7"]);
    let refusal = |path: &Path, options: &str| {
        let message = open(path, options).err().unwrap().to_string();
        assert!(!message.contains('\n'), "{message}");
        message
    };
    let other = refusal(&library, "");
    assert!(other.contains("it speaks version 7 of the interface, not 1"), "{other}");
    let (_without, library) = build("tests/it/plugin/broken.c", &["-DNO_GET"]);
    assert!(refusal(&library, "").contains("it lacks kvdyno_get; build it"), "no kvdyno_get");
    let (_without, library) = build("tests/it/plugin/broken.c", &["-DNO_SCAN"]);
    let scan = refusal(&library, "durability=none");
    assert!(scan.contains("declares KVDYNO_SCAN, but there is no kvdyno_scan"), "{scan}");
    let text = folder.path().join("text.so");
    std::fs::write(&text, "not a library").unwrap();
    assert!(refusal(&text, "").contains("text.so"));
    assert!(refusal(&folder.path().join("none.so"), "").contains("No such file"));
    assert!(refusal(&library, "config=a%00b").contains("a zero byte in `config`"));
    let url = StoreUrl::parse("plugin:").and_then(|mut url| PluginStore::open(&mut url));
    assert!(url.err().unwrap().to_string().contains("plugin:./mine.so"));
}

#[test]
fn what_may_not_be_declared_is_refused() {
    let (_folder, library) = build("tests/it/plugin/broken.c", &[]);
    for (flaw, hint) in [
        ("open-fails", "no room"),
        ("open-null", "kvdyno_open answers OK and makes nothing"),
        ("open-code", "kvdyno_open answers 42"),
        ("no-name", "names no engine"),
        ("operations", "declares operations 0x6"),
        ("durability", "declares durability 9"),
        ("consistency", "declares consistency -1"),
        ("weak", "declares durability `none`, but `survives process kill` was asked for"),
    ] {
        let options = format!("durability=process&config={flaw}");
        let error = open(&library, &options).err().expect(flaw).to_string();
        assert!(error.contains(hint) && !error.contains('\n'), "{flaw}: {error}");
    }
    let store = open(&library, "durability=none&config=connect-null").unwrap();
    let error = run(store.connect(1)).err().unwrap();
    assert!(error.message.contains("kvdyno_connect answers OK and makes nothing"), "{error}");
}

/// The answers of one client to one request of each kind.
struct Answers {
    get: Answer<bool>,
    put: Answer<()>,
    delete: Answer<bool>,
    scan: Answer<()>,
}

fn ask(library: &Path, flaw: &str) -> Answers {
    let store = open(library, &format!("durability=none&config={flaw}")).unwrap();
    run(async {
        let mut connection = store.connect(1).await.unwrap();
        let (client, transport) = (&mut connection.clients[0], &mut connection.transport);
        let (mut reading, mut rows) = (Reading::default(), Rows::default());
        let put = whole(b"key", b"value", None);
        Answers {
            get: drive(transport, client.get(b"key", &mut reading)).await,
            put: drive(transport, client.put(put)).await,
            delete: drive(transport, client.delete(b"key")).await,
            scan: drive(transport, client.scan(b"", 3, &mut rows)).await,
        }
    })
}

fn breach<T: std::fmt::Debug>(answer: Answer<T>, certainty: Certainty, hint: &str) {
    let error = answer.expect_err(hint);
    assert_eq!((error.certainty, error.class), (certainty, ErrorClass::Protocol), "{error}");
    assert!(error.message.contains(hint), "{error}");
}

#[test]
fn a_breach_of_the_contract_is_an_error_that_says_how() {
    use Certainty::{Failed, Indeterminate};
    let (_folder, library) = build("tests/it/plugin/broken.c", &[]);
    for (flaw, hint) in [
        ("length", "kvdyno_get gives 65537 bytes where there is room for 65536"),
        ("overrun", "kvdyno_get writes behind the 65536 bytes"),
        ("more-room", "kvdyno_get asks for 1 bytes of room where it has 65536"),
        ("huge", "kvdyno_get asks for 18446744073709551615 bytes of room"),
        ("ever-more", "kvdyno_get asks for more room again and again"),
        ("unsure", "kvdyno_get answers 4, which is none of its answers"),
        ("trouble", "kvdyno_get tells of trouble 99"),
    ] {
        breach(ask(&library, flaw).get, Failed, hint);
    }
    let code = ask(&library, "code");
    breach(code.get, Failed, "kvdyno_get answers 42");
    breach(code.put, Indeterminate, "kvdyno_put answers 42");
    breach(code.delete, Indeterminate, "kvdyno_delete answers 42");
    let absent = ask(&library, "absent");
    breach(absent.put, Indeterminate, "kvdyno_put answers 1, which is none of its answers");
    assert_eq!(absent.delete, Ok(false));
    for (flaw, hint) in [
        ("", "kvdyno_scan gives more than the 3 rows asked for"),
        ("row-length", "kvdyno_scan gives row 0 with a wrong length"),
        ("half-row", "kvdyno_scan gives row 0 with a wrong length"),
        ("scan-absent", "kvdyno_scan answers ABSENT"),
    ] {
        breach(ask(&library, flaw).scan, Failed, hint);
    }
}

#[test]
fn what_a_plugin_says_of_an_error_is_passed_on() {
    let (_folder, library) = build("tests/it/plugin/broken.c", &[]);
    let unsure = ask(&library, "unsure");
    let timeout = RequestError::indeterminate(ErrorClass::Timeout, "it.so says no more");
    assert_eq!(unsure.put, Err(timeout.clone()));
    assert_eq!(unsure.delete, Err(timeout));
    let silent = ask(&library, "silent");
    let failed = RequestError::failed(ErrorClass::Timeout, "it.so says no more");
    assert_eq!((silent.get, silent.put), (Err(failed.clone()), Err(failed)));
}
