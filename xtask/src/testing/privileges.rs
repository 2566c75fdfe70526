//! Privileges that some tests need: they mount file systems, make devices and namespaces. These tests are marked
//! `#[ignore = "needs …"]`, so that `cargo test` alone passes anywhere; `cargo xtask test` runs them where it can.

use std::fs::OpenOptions;
use std::process::Command;

use crate::steps;

/// Privileges of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Privileges {
    /// True if namespaces with mounts of their own can be made.
    mounts: bool,
    /// True if the device of file systems in user space can be opened.
    fuse: bool,
}

impl Privileges {
    /// Tries what privileged tests do.
    #[must_use]
    pub fn of_this_process() -> Privileges {
        let mount = "mount --make-rprivate / && mount -t tmpfs none /mnt";
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "--net", "--pid", "--fork", "--propagation", "unchanged"]);
        let mounts = steps::succeeds(unshare.args(["sh", "-c", mount]));
        let fuse = OpenOptions::new().read(true).write(true).open("/dev/fuse").is_ok();
        Privileges { mounts, fuse }
    }

    /// Returns true if every test can run.
    #[must_use]
    pub fn suffice(self) -> bool {
        self.mounts && self.fuse
    }

    /// Tells that `count` tests do not run, and what they need.
    #[must_use]
    pub fn left_out(self, count: usize) -> String {
        let mounts = (!self.mounts).then_some("root with CAP_SYS_ADMIN on a mounted /");
        let fuse = (!self.fuse).then_some("/dev/fuse");
        let lacking: Vec<&str> = mounts.into_iter().chain(fuse).collect();
        let needs = lacking.join(" and ");
        format!(
            "left out: {count} tests that mount file systems or make namespaces; they need {needs}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted_and_its_need_is_named() {
        let all = Privileges { mounts: true, fuse: true };
        assert!(all.suffice());
        let none = Privileges { mounts: false, fuse: false };
        assert!(!none.suffice());
        let told = none.left_out(12);
        assert!(
            told.starts_with("left out: 12 tests ") && told.contains("CAP_SYS_ADMIN"),
            "{told}"
        );
        assert!(Privileges { mounts: true, fuse: false }.left_out(1).ends_with("need /dev/fuse"));
    }
}
