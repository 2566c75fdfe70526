//! Deployments whose machines are created: each step, what a failure and a kill leave behind, and that nothing of it stays.

use std::path::Path;
use std::process::Command;

use crate::support::{Ended, Running, Scratch, finds_kvdyno};

/// A deployment whose machines are files of this folder: all that `create` does is one command away from being seen.
const FILES: &str = r#"
url = "redis://$NODES"
port = 1
expires = "2h"
listings_apart = "200ms"
functions = 'made() { ls "$PLACE" | grep "^$TAG" || true; }'
create = '''
test -e "$STATE/record.json" && cp "$STATE/record.json" "$PLACE/record-at-create"
echo "user:hidden@cloud redis://u:hidden@h" >&2
touch "$PLACE/$TAG-1" "$PLACE/$TAG-2"
[ -z "$HANG" ] || { touch "$PLACE/hangs"; exec sleep 600; }
echo '{"nodes": [{"name": "one", "outer": "out", "inner": "in"}], "load": []}'
'''
ready = 'test "$OUTER $INNER $MACHINE $MACHINE_KIND $NUMBER" = "out in one node 0"'
prepare = 'echo "prepared $NODES" > "$PLACE/prepared"; [ -z "$FAIL" ] || { echo first; echo "no such package" >&2; exit 3; }'
list = 'made'
sweep = 'for one in $(made); do rm "$PLACE/$one"; break; done'
[variables]
PLACE = ""
HANG = ""
FAIL = ""
"#;

/// A place with that file, and a folder for records.
struct Place(Scratch);

impl Place {
    fn new() -> Place {
        let scratch = Scratch::new();
        scratch.write("d.toml", FILES);
        std::fs::create_dir(scratch.path("made")).expect("a folder");
        Place(scratch)
    }

    fn command(&self, line: &str) -> Running {
        let mut command = finds_kvdyno(Command::new("sh"));
        let made = self.0.path("made");
        command.args(["-c", &format!("exec kvdyno {line}")]);
        command.env("KVDYNO_STATE", self.0.path("state")).env("MADE", made);
        self.0.spawn(command)
    }

    fn kvdyno(&self, line: &str) -> Ended {
        self.command(line).wait()
    }

    /// Returns what `create` has made and nobody has removed.
    fn made(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.0.path("made")).expect("the folder");
        let names =
            names.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
        names.filter(|name| name.starts_with("kvdyno-")).collect()
    }

    fn records(&self) -> usize {
        std::fs::read_dir(self.0.path("state/deployments")).map_or(0, Iterator::count)
    }

    fn is_clean(&self) {
        assert_eq!((self.made(), self.records()), (Vec::new(), 0));
    }
}

#[test]
fn a_deployment_goes_up_is_shown_and_goes_down() {
    let place = Place::new();
    let planned = place.kvdyno("deployment plan d.toml --var PLACE=$MADE").expect(0);
    assert!(
        planned.out.contains("touch \"$PLACE/$TAG-1\"") && planned.out.contains("HANG = "),
        "{planned:?}"
    );
    place.is_clean();
    let asked = place.kvdyno("deployment up d.toml --var PLACE=$MADE").expect(64);
    let question = "an unknown number of machines, no price stated (d.toml has no [bill]), expires in 2 h: add --yes";
    assert!(asked.err.contains(question), "{}", asked.err);
    place.is_clean();

    let up = place.kvdyno("deployment up d.toml --var PLACE=$MADE --yes").expect(0);
    assert!(up.err.contains("create (") && up.err.contains("prepare: 1 machines ("), "{}", up.err);
    assert_eq!((place.made().len(), place.records()), (2, 1));
    let read = |name: &str| std::fs::read_to_string(place.0.path(name)).expect("a file");
    assert!(read("made/record-at-create").contains("\"stage\": \"create\""), "written down before");
    assert_eq!(read("made/prepared"), "prepared in:1\n");
    let nodes = up.out.lines().find_map(|line| line.split_once("--testbed ")).expect("the line").1;
    let plain = std::fs::read_to_string(nodes).expect("the plain file");
    assert!(
        plain.contains("url = \"redis://in:1\"") && plain.contains("address = \"in:1\""),
        "{plain}"
    );

    let status = place.kvdyno("deployment status d.toml").expect(0);
    assert!(status.out.contains("(up)") && status.out.contains("one is ready"), "{}", status.out);
    assert!(status.out.contains("found kvdyno-"), "{}", status.out);
    // It is up on purpose: nobody is told of it, and a sweep leaves it.
    assert!(
        !place.kvdyno("run quick --store map: --dry-run").expect(0).err.contains("left behind")
    );
    assert!(place.kvdyno("deployment sweep").expect(0).out.contains("nothing was left behind"));
    let refused = place.kvdyno("deployment extend d.toml --by 3h").expect(64);
    assert!(
        refused.err.contains("it has no command `extend`, so its machines end at 20"),
        "{}",
        refused.err
    );
    let down = place.kvdyno("deployment down d.toml").expect(0);
    assert!(down.err.contains("found kvdyno-"), "{}", down.err);
    place.is_clean();
    place.kvdyno("deployment down d.toml").expect_line(64, &["nothing of d.toml is up"]);
}

#[test]
fn an_extension_is_the_files_own_command() {
    let place = Place::new();
    let extend = "extend = 'echo \"$EXPIRES_EPOCH\" > \"$PLACE/extended\"'\n";
    place.0.write("d.toml", &format!("{extend}{FILES}"));
    place.kvdyno("deployment up d.toml --var PLACE=$MADE --yes").expect(0);
    let status = || place.kvdyno("deployment status d.toml").expect(0).out;
    let before = status();
    place.kvdyno("deployment extend d.toml --by 9h").expect(0);
    let epoch = std::fs::read_to_string(place.0.path("made/extended")).expect("the new moment");
    let from_now = epoch.trim().parse::<u64>().expect("seconds") - humantime_now();
    assert!((8 * 3600..=9 * 3600).contains(&from_now), "{from_now}");
    assert_ne!(before.lines().next(), status().lines().next());
    place.kvdyno("deployment down d.toml").expect(0);
    place.is_clean();
}

fn humantime_now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("a time after 1970").as_secs()
}

#[test]
fn tuning_is_disclosed_and_put_back() {
    let place = Place::new();
    let tune = "[tune.node]\nswappiness = 1\nsomaxconn = 4096\n";
    let shell = "shell = 'KVDYNO_ROOT=\"$PLACE/fake\" sh -s'\n";
    place.0.write("d.toml", &format!("{shell}{FILES}{tune}"));
    let swappiness = place.0.path("made/fake/proc/sys/vm/swappiness");
    std::fs::create_dir_all(swappiness.parent().expect("its folder")).expect("a fake root");
    std::fs::write(&swappiness, "60\n").expect("a fake root");
    let read = || std::fs::read_to_string(&swappiness).expect("it is there");
    let up = place.kvdyno("deployment up d.toml --var PLACE=$MADE --yes").expect(0);
    assert_eq!(read(), "1\n");
    let nodes = up.out.lines().find_map(|line| line.split_once("--testbed ")).expect("the line").1;
    let plain = std::fs::read_to_string(nodes).expect("the plain file");
    assert!(plain.contains("\"one /proc/sys/vm/swappiness\" = \"1 (before: 60)\""), "{plain}");
    assert!(
        plain.contains("somaxconn\" = \"not set to 4096: the machine has no such file\""),
        "{plain}"
    );
    place.kvdyno("deployment down d.toml").expect(0);
    assert_eq!(read(), "60\n");
    place.is_clean();
}

#[test]
fn a_step_that_fails_undoes_what_was_made_and_is_named() {
    let place = Place::new();
    let failed =
        place.kvdyno("deployment up d.toml --var PLACE=$MADE --var FAIL=yes --yes").expect(69);
    let line = "`prepare` on one failed (exit status: 3): no such package; what was made is destroyed again";
    assert!(failed.err.contains(line), "{}", failed.err);
    place.is_clean();
    // A run keeps all output in its result, without secrets, also of the steps before it.
    let line = "run quick --deployment d.toml --var PLACE=$MADE --var FAIL=yes --yes --out kept";
    place.kvdyno(line).expect(69);
    let log =
        |name: &str| std::fs::read_to_string(place.0.path(&format!("kept/deployment/{name}")));
    let create = log("create.log").expect("its output");
    assert!(create.contains("redis://***@h") && !create.contains("redis://u:hidden"), "{create}");
    assert!(log("prepare-one.log").expect("its output").contains("no such package"));
    assert!(log("sweep.log").is_ok());
    place.is_clean();
    // What is wrong with the run is found before anything is made.
    place.kvdyno("run no-such-suite --deployment d.toml --var PLACE=$MADE --yes").expect(64);
    assert!(!place.0.path("made/hangs").exists());
    place.is_clean();
}

#[test]
fn what_a_killed_kvdyno_left_behind_is_told_and_swept() {
    let place = Place::new();
    let mut up = place.command("deployment up d.toml --var PLACE=$MADE --var HANG=yes --yes");
    let hangs = place.0.path("made/hangs");
    up.until("it hangs in create", || hangs.exists());
    assert!(
        place.kvdyno("deployment sweep").expect(0).out.contains("nothing was left behind"),
        "it lives"
    );
    place.kvdyno("deployment down d.toml").expect_line(64, &["another kvdyno works on"]);
    up.signal(9);
    drop(up.wait());
    assert_eq!((place.made().len(), place.records()), (2, 1));
    let told = place.kvdyno("run quick --store map: --dry-run").expect(0);
    assert!(
        told.err.contains("was left behind at `create`") && told.err.contains("deployment sweep`"),
        "{}",
        told.err
    );
    // The file itself may be gone by then.
    std::fs::remove_file(place.0.path("d.toml")).expect("it was there");
    place.kvdyno("deployment sweep").expect(0);
    place.is_clean();
}

#[test]
fn an_interrupt_undoes_and_a_second_one_leaves_it_to_the_sweep() {
    let place = Place::new();
    let hangs = place.0.path("made/hangs");
    let mut up = place.command("deployment up d.toml --var PLACE=$MADE --var HANG=yes --yes");
    up.until("it hangs in create", || hangs.exists());
    up.signal(2);
    let ended = up.wait().expect(130);
    assert!(
        ended.err.contains("interrupted at `create`; what was made is destroyed again"),
        "{}",
        ended.err
    );
    place.is_clean();

    std::fs::remove_file(&hangs).expect("it was there");
    let slow = FILES.replace("list = 'made'", "list = 'touch \"$PLACE/lists\"; exec sleep 600'");
    place.0.write("d.toml", &slow);
    let mut up = place.command("deployment up d.toml --var PLACE=$MADE --var HANG=yes --yes");
    up.until("it hangs in create", || hangs.exists());
    up.signal(2);
    let lists = place.0.path("made/lists");
    up.until("it undoes", || lists.exists());
    up.signal(2);
    let ended = up.wait().expect(130);
    assert!(ended.err.contains("is not destroyed: interrupted at `list`"), "{}", ended.err);
    assert_eq!(place.records(), 1);
}

#[test]
fn a_listing_that_lags_is_not_believed() {
    let place = Place::new();
    // The first listing is empty, though something is there.
    let late = "list = '[ -e \"$PLACE/asked\" ] || { touch \"$PLACE/asked\"; exit 0; }; made'";
    place.0.write("d.toml", &FILES.replace("list = 'made'", late));
    place.kvdyno("deployment up d.toml --var PLACE=$MADE --yes").expect(0);
    place.kvdyno("deployment down d.toml").expect(0);
    place.is_clean();
}

#[test]
fn the_ready_files_can_be_planned() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deployments");
    let place = Place::new();
    let mut planned = 0;
    for entry in std::fs::read_dir(folder).expect("the ready files") {
        let path = entry.expect("an entry").path();
        let is_file = path.extension().is_some_and(|end| end == "toml");
        if !is_file || path.file_name().is_some_and(|name| name == "prices.toml") {
            continue;
        }
        let shown = place.kvdyno(&format!("deployment plan {}", path.display())).expect(0);
        assert!(shown.out.contains("expires in") && shown.out.contains("create"), "{}", shown.out);
        let page = path.with_extension("md");
        let page =
            std::fs::read_to_string(&page).unwrap_or_else(|e| panic!("{}: {e}", page.display()));
        assert!(page.contains("not yet run on a real cloud"), "{}", path.display());
        planned += 1;
    }
    assert_eq!(planned, 5);
}

/// A stand-in for `tofu`, which notes what it is asked and prints outputs in its form.
const TOFU: &str = r#"#!/bin/sh
echo "$*" >> asked
for word; do case $word in -state=*) state=${word#-state=};; esac; done
case $2 in
  apply) echo made > "$state";;
  destroy) rm "$state";;
  output) echo '{"nodes": {"sensitive": false, "type": ["list", "string"], "value": ["10.0.0.1"]},
    "load": {"value": [{"name": "l", "outer": "5.5.5.5", "inner": "10.0.0.2"}]}}';;
esac
"#;

#[test]
fn a_module_of_tofu_is_applied_read_and_destroyed() {
    let place = Place::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deployments/tofu.toml");
    place.0.write("d.toml", &std::fs::read_to_string(file).expect("the ready file"));
    place.0.write("tofu", TOFU);
    place.0.write("ssh", "#!/bin/sh\nexit 0\n");
    let before = "chmod +x tofu ssh; export PATH=$PWD:$PATH KVDYNO_STATE=$PWD/state";
    let run = |line: &str| place.0.shell(&format!("{before}; exec kvdyno {line}")).wait();
    let values =
        "--var TOFU=$PWD/tofu --var MODULE=m --var CONSOLE=10.0.0.9 --var PROGRAM=/dev/null";
    let up = run(&format!("deployment up d.toml {values} --yes")).expect(0);
    assert!(
        up.out.contains("node node-1: 10.0.0.1") && up.out.contains("load l: 5.5.5.5"),
        "{}",
        up.out
    );
    assert!(up.out.contains("--listen 10.0.0.9:7000"), "{}", up.out);
    run("deployment down d.toml").expect(0);
    place.is_clean();
    let asked = std::fs::read_to_string(place.0.path("asked")).expect("what it was asked");
    let verbs: Vec<&str> = asked.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(verbs, ["init", "apply", "output", "destroy"], "{asked}");
    let destroyed = asked.lines().last().expect("a line");
    assert!(
        destroyed.starts_with("-chdir=m destroy") && destroyed.contains("tag=kvdyno-"),
        "{asked}"
    );
}

#[test]
fn at_a_terminal_the_question_is_asked() {
    let place = Place::new();
    let refused = place.0.at_a_terminal("deployment up d.toml", "n\n");
    assert!(
        refused.out.contains("create? [y/N]")
            && refused.out.contains("cancelled, nothing was created"),
        "{refused:?}"
    );
    place.is_clean();
}

/// Five machines with an sshd each, three servers and two agents: the ready file as it is.
#[test]
#[cfg(feature = "server-tests")]
fn ssh_runs_on_five_machines_and_leaves_nothing_wherever_it_is_killed() {
    let scratch = Scratch::new();
    scratch.write("counted.toml", super::agents::COUNTED);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deployments/ssh.toml");
    let file = std::fs::read_to_string(file).expect("the ready file");
    // Its queue of connections is a setting of each machine's own network, so it is tuned for real.
    let tuned = "[tune.node]\nsomaxconn = 2048\n";
    scratch.write("deployment.toml", &format!("shell = 'on \"$OUTER\" sh -s'\n{file}{tuned}"));
    let script = include_str!("deployments/ssh.sh");
    scratch.write("do.sh", &format!("{}\n{script}", include_str!("engines/world.sh")));
    let mut command = finds_kvdyno(Command::new("unshare"));
    command.args(["--uts", "--mount", "--net", "--pid", "--fork", "--kill-child", "bash", "do.sh"]);
    let long = "--records 2k --clients 4 --mix get=50,update=50 --rate 1k/s --duration 60s";
    command.env("LONG", long).env_remove("KVDYNO_TOKEN");
    let ended = scratch.spawn(command).wait();
    println!("{}\n{}", ended.out, ended.err);
    let read = |name: &str| std::fs::read_to_string(scratch.path(name)).unwrap_or_default();
    let code = |name: &str| {
        let codes = read("codes");
        let found =
            codes.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<i32>().ok());
        found.unwrap_or_else(|| panic!("no code of {name}"))
    };
    assert!([0, 2].contains(&code("whole")));
    let result = scratch.result("whole");
    let run = &result["runs"][0];
    assert_eq!(run["status"]["state"], "complete");
    assert_eq!(run["testbed"]["nodes"].as_array().map(Vec::len), Some(3));
    let steps = run["testbed"]["steps"].to_string();
    assert!(
        steps.contains("deployment: create") && steps.contains("deployment: prepare"),
        "{steps}"
    );
    let configuration = run["testbed"]["configuration"].to_string();
    assert!(configuration.contains("2048 (before: "), "{configuration}");
    let mix = super::agents::phase(&result, "mix");
    assert_eq!(mix["agents"].as_array().map(Vec::len), Some(2));
    assert_eq!(mix["tally"]["anomalies"], serde_json::json!([0, 0, 0, 0, 0]));
    assert_eq!(
        (read("left-whole").as_str(), read("records").as_str()),
        ("", ""),
        "nothing is left"
    );
    assert_eq!(code("failed"), 69);
    assert_eq!(read("left-failed"), "");
    for step in ["ready", "prepare", "start", "run", "destroy"] {
        let notice = read(&format!("notice-{step}"));
        assert!(notice.contains("was left behind at `"), "{step}: {notice}");
        assert_eq!(code(&format!("swept-{step}")), 0, "{step}: {}", read(&format!("swept-{step}")));
        assert_eq!(read(&format!("left-{step}")), "", "{step}");
        assert_eq!(read(&format!("again-{step}")), "nothing was left behind\n", "{step}");
    }
}

/// AWS as far as `moto` plays it, with the real `aws` command: the ready file as it is. What moto cannot do, placement groups,
/// is checked for its form.
#[test]
#[cfg(feature = "server-tests")]
fn aws_creates_lists_and_sweeps_after_a_kill() {
    let python = super::engines::with_python("moto[server]==5.2.1 awscli==1.45.11");
    let scratch = Scratch::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deployments/aws-2014.toml");
    for name in ["aws-2014.toml", "prices.toml"] {
        let text = std::fs::read_to_string(file.with_file_name(name)).expect("the ready file");
        scratch.write(name, &text);
    }
    scratch.write("do.sh", include_str!("deployments/aws.sh"));
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let mut command = finds_kvdyno(Command::new("bash"));
    command.arg("do.sh").env("PORT", port.expect("a free port").port().to_string());
    command.env("PYTHON", python.join("bin"));
    let ended = scratch.spawn(command).wait();
    println!("{}\n{}", ended.out, ended.err);
    let ended = ended.expect(0);
    let read = |name: &str| std::fs::read_to_string(scratch.path(name)).unwrap_or_default();
    assert_eq!(
        read("made").split_whitespace().count(),
        3,
        "one server and two clients: {}",
        read("made")
    );
    assert!(read("notice").contains("was left behind at `ready`"), "{}", read("notice"));
    assert!(
        read("swept").contains("found i-"),
        "not at the first listing, which lagged: {}",
        read("swept")
    );
    assert_eq!(read("left").trim(), "", "instances, volumes, interfaces and groups");
    let record: serde_json::Value = serde_json::from_str(&read("record")).expect("the record");
    let machines = |kind: &str| {
        let all = record["machines"].as_array().expect("machines").iter();
        all.filter(|machine| machine["kind"] == kind).count()
    };
    assert_eq!((machines("node"), machines("load")), (1, 2), "as `aws` has printed them: {record}");
    let placed = read("placement").lines().filter(|line| line.contains("strategy cluster")).count();
    assert_eq!(placed, 1);
    assert!(
        ended.err.contains("3 machines, $4.20 an hour (prices.toml, 2014), expires in 4 h"),
        "{}",
        ended.err
    );
}
