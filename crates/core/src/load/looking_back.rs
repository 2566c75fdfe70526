//! Looks for single records while a load goes on, by clients of its own, outside of every figure: after the load it
//! may be too late to find out what a store has lost, because the store does not start again.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::thread::sleep;
use std::time::Duration;

use super::connection_tasks::ConnectionTasks;
use super::copies::look;
use super::error::LoadError;
use super::job::StoreContext;
use crate::measure::{Nanos, now};
use crate::store::{ErasedStore, Reading};
use crate::workload::KeyWriter;

/// Clients that look, where a connection carries several.
const CLIENTS: usize = 32;
/// Pause between two looks at records that were absent.
const PAUSE: Duration = Duration::from_millis(20);
/// Longest time to look again at what was absent at first, ns.
const AGAIN: Nanos = 1_000_000_000;
/// Looks at a record before it is said to be absent.
const LOOKS: usize = 3;

/// Records that were looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LookedBack {
    /// Number of records about which the store answered; a record that was absent at first counts only if it was
    /// answered at each look.
    pub answered: u64,
    /// Records that were absent at each of several looks, in ascending order.
    pub absent: Vec<u64>,
}

/// Looks for `records` until `deadline` on [`now`]'s clock; then looks at absent ones again, for a second at most.
pub(super) async fn look_back(
    store: &(impl ErasedStore + ?Sized),
    context: &StoreContext,
    records: &[u64],
    deadline: Nanos,
) -> Result<LookedBack, LoadError> {
    let keys = KeyWriter::new(context.dataset.key, context.dataset.id)?;
    let slots = if context.profile.capabilities.pipeline { CLIENTS } else { 1 };
    let mut connection = store.connect(slots).await.map_err(LoadError::Unavailable)?;
    let mut left = records.to_vec();
    let mut found = LookedBack::default();
    for number in 0..LOOKS {
        let until = if number > 0 { deadline + AGAIN } else { deadline };
        if number > 0 {
            sleep(PAUSE);
        }
        let (next, absent) = (Cell::new(0), RefCell::new(Vec::new()));
        let answered = Cell::new(0);
        let all = connection.clients.iter_mut().map(|client| {
            let (next, absent, answered, left, keys) = (&next, &absent, &answered, &left, &keys);
            let looking: Pin<Box<dyn Future<Output = ()> + '_>> = Box::pin(async move {
                let (mut key, mut reading) = (Vec::new(), Reading::default());
                while let Some(&record) = left.get(next.replace(next.get() + 1)) {
                    if now() >= until || context.interrupt.is_raised() {
                        return;
                    }
                    keys.write(record, &mut key);
                    match look(client, &key, record, &mut reading).await {
                        Ok(is_there) => {
                            answered.set(answered.get() + 1);
                            absent.borrow_mut().extend((!is_there).then_some(record));
                        }
                        Err(error) if error.connection_lost => return,
                        Err(_) => {}
                    }
                }
            });
            looking
        });
        ConnectionTasks::new(all.collect(), &mut connection.transport).await;
        match number {
            0 => found.answered = answered.get(),
            // Of what was not answered again nothing is known.
            _ => found.answered -= left.len() as u64 - answered.get(),
        }
        left = absent.into_inner();
        if left.is_empty() {
            break;
        }
    }
    found.absent = left;
    found.absent.sort_unstable();
    Ok(found)
}
