//! The one loop. Pacing, stop condition and store are its parameters; nothing else in kvdyno
//! sends load.

use super::backoff::Backoff;
use super::desk::Desk;
use super::lane::Lane;
use super::pace::Pace;
use super::post::Post;
use super::worker::Worker;
use crate::measure;
use crate::store::Client;

/// Carries out operations of `lane` with one client until the lane gives out no more.
pub(super) async fn run_client<C: Client, P: Pace>(
    worker: &Worker,
    lane: &Lane,
    pace: &P,
    post: &impl Post,
    client: &mut C,
) {
    let mut desk = Desk::new(worker, lane, post);
    let mut backoff = Backoff::default();
    let mut now = measure::now();
    while let Some(turn) = lane.claim(now, worker.deadline()) {
        if let Some(due) = turn.due {
            if due > now && !pace.until(due).await {
                break;
            }
            worker.note_lag(due, now);
        }
        worker.note_start();
        let after = desk.operate(client, &turn).await;
        now = after.done;
        if after.connection_lost {
            pace.rest(backoff.wait()).await;
            now = measure::now();
        } else {
            backoff.reset();
        }
    }
}
