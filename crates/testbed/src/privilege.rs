//! Privileges that networks and disks of a testbed's own need. Root may lack them, in a container, and a mount namespace
//! cannot be set apart in a chroot: each is tried where nobody sees it, before anything is made.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::geteuid;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::error::TestbedError;

/// Tries in a thread of its own, which ends at once, and what it made with it.
fn tried(what: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<()> {
    let thread = std::thread::spawn(what);
    thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread ended early")))
}

/// Refuses a network namespace that cannot be made here.
///
/// # Errors
/// [`TestbedError::Node`] with the privilege that is missing.
pub fn network_namespace(what: &str) -> Result<(), TestbedError> {
    // SAFETY: descriptors stay shared; only the network is the thread's own.
    let made = || tried(|| Ok(unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?));
    privileged(what, "a network namespace", geteuid().is_root(), made)
}

/// Refuses a network namespace that cannot be linked to this process's own: a process may make one in a user
/// namespace, and still have no right to its first one.
///
/// # Errors
/// [`TestbedError::Node`] with the privilege that is missing.
pub fn linked_network_namespace(what: &str) -> Result<(), TestbedError> {
    let made = || {
        tried(|| {
            let own = File::open("/proc/thread-self/ns/net")?;
            // SAFETY: descriptors stay shared; only the network is the thread's own.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            Ok(move_into_link_name_space(own.as_fd(), Some(LinkNameSpaceType::Network))?)
        })
    };
    privileged(what, "a network namespace", geteuid().is_root(), made)
}

/// Refuses a mount namespace that cannot be made here, or from which mounts would spread.
///
/// # Errors
/// [`TestbedError::Node`] with the privilege that is missing.
pub fn mount_namespace(what: &str) -> Result<(), TestbedError> {
    privileged(what, "a mount namespace", geteuid().is_root(), || tried(set_mounts_apart))
}

/// Gives the calling thread a mount namespace from which nothing spreads.
///
/// # Errors
/// The system's error: `EPERM` without the privilege, `EINVAL` where `/` is no mount point, as in a chroot.
pub fn set_mounts_apart() -> io::Result<()> {
    // SAFETY: descriptors stay shared; only what is mounted is the calling thread's own.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
    Ok(mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}

/// Says in one line why `made` cannot be made, and what to do.
fn privileged(
    what: &str,
    namespace: &str,
    is_root: bool,
    made: impl FnOnce() -> io::Result<()>,
) -> Result<(), TestbedError> {
    if !is_root {
        return Err(TestbedError::Node(format!("{what} needs root: start kvdyno as root")));
    }
    let Err(error) = made() else { return Ok(()) };
    let why = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "root lacks CAP_SYS_ADMIN here: run kvdyno outside of the container, or give the container that capability"
                .to_owned()
        }
        io::ErrorKind::InvalidInput => {
            "/ is no mount point here: bind the folder to itself before the chroot (`mount --bind DIR DIR`)".to_owned()
        }
        _ => error.to_string(),
    };
    Err(TestbedError::Node(format!("{what} needs {namespace}, which cannot be made: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_missing_privilege_has_its_advice() {
        let refused = |is_root, error: Option<i32>| {
            let made = || error.map_or(Ok(()), |number| Err(io::Error::from_raw_os_error(number)));
            privileged("a disk", "a mount namespace", is_root, made)
                .map_err(|error| error.to_string())
        };
        assert!(refused(true, None).is_ok());
        assert!(refused(false, None).unwrap_err().contains("start kvdyno as root"));
        assert!(refused(true, Some(libc::EPERM)).unwrap_err().contains("CAP_SYS_ADMIN"));
        assert!(refused(true, Some(libc::EINVAL)).unwrap_err().contains("mount --bind"));
        assert!(
            refused(true, Some(libc::ENOSPC)).unwrap_err().contains("cannot be made: No space")
        );
    }
}
