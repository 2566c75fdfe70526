//! First steps of a user: a built-in suite to read, a suite of one's own, the completions of a shell, manual pages.

use crate::support::Scratch;

#[test]
fn a_new_suite_runs_as_it_is_written_and_is_never_written_over() {
    let scratch = Scratch::new();
    let ended = scratch.kvdyno("new mine.toml").expect(0);
    assert!(ended.out.contains("kvdyno run mine.toml --store map: --dry-run"), "{}", ended.out);
    scratch.kvdyno("run mine.toml --store map: --dry-run").expect(0);
    let words =
        "run mine.toml --store map: --scale 0.01 --duration 300ms --set paced.rate=100/s --out r";
    let ended = scratch.kvdyno(words);
    assert!([0, 2].contains(&ended.code()), "{ended:#?}");
    let claim = &scratch.result("r")["runs"][0]["claims"][0];
    // A build without optimisation confirms nothing.
    assert_ne!(claim["standing"], "refuted", "{claim:#}");
    assert_eq!(claim["conditions"].as_array().map(Vec::len), Some(2), "{claim:#}");
    let again = scratch.kvdyno("new mine.toml").expect(64);
    assert!(again.err.contains("is there already"), "{}", again.err);
    let nowhere = scratch.kvdyno("new no/such/folder/mine.toml").expect(64);
    assert_eq!(nowhere.err.lines().count(), 1, "{}", nowhere.err);
}

#[test]
fn a_built_in_suite_is_shown_as_a_file_that_does_the_same() {
    let scratch = Scratch::new();
    let shown = scratch.kvdyno("suites show failover").expect(0).out;
    scratch.write("copy.toml", &shown);
    let plan = |suite: &str| {
        scratch.kvdyno(&format!("run {suite} --testbed sim:2 --dry-run")).expect(0).out
    };
    assert_eq!(plan("copy.toml"), plan("failover"));
    let missing = scratch.kvdyno("suites show failovr").expect(64);
    assert!(
        missing.err.contains("failover") && missing.err.contains("kvdyno suites"),
        "{}",
        missing.err
    );
}

#[test]
fn every_shell_gets_completions_of_all_commands() {
    let scratch = Scratch::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = scratch.kvdyno(&format!("completions {shell}")).expect(0).out;
        for command in ["run", "compare", "testbed", "winnow"] {
            assert!(script.contains(command), "{shell} lacks {command}");
        }
    }
    // The shell itself reads what it is given.
    scratch.write("kvdyno.bash", &scratch.kvdyno("completions bash").out);
    let ended = scratch.shell("source kvdyno.bash && complete -p kvdyno").wait();
    assert!(ended.out.contains("-F _kvdyno kvdyno"), "{ended:#?}");
}

#[test]
fn manual_pages_show_the_commands_and_options_of_help() {
    let scratch = Scratch::new();
    scratch.kvdyno("man pages").expect(0);
    let page = |name: &str| {
        let page = std::fs::read_to_string(scratch.path("pages").join(name)).expect("a page");
        page.replace("\\-", "-")
    };
    for command in ["run", "compare", "testbed", "winnow"] {
        assert!(page("kvdyno.1").contains(&format!("kvdyno-{command}(1)")), "lacks {command}");
    }
    let help = scratch.kvdyno("run --help").expect(0).out;
    let run = page("kvdyno-run.1");
    for option in ["--store", "--trials", "--on-agent-lost"] {
        assert!(help.contains(option) && run.contains(option), "{option}");
    }
}
