//! The only loop that sends load. Pacing, stop condition and store are its parameters.

use std::future::Future;
use std::ops::Deref;

use super::backoff::Backoff;
use super::dealing::WAIT;
use super::operation_runner::{OperationRunner, Request, Single};
use super::pace::Pace;
use super::request_clock::RequestClock;
use super::worker::Worker;
use crate::measure;
use crate::store::Client;
use crate::workload::Kind;

/// Carries out operations of the worker's lane number `lane` with one client, until the lane gives out no more. One
/// future that owns what it needs, and no `async fn`: an `async fn` keeps every argument twice, and a client's state
/// is fetched anew for each of its operations.
// Why it is written out is said above.
#[allow(clippy::manual_async_fn)]
pub(super) fn run_client<C: Client, P: Pace>(
    worker: impl Deref<Target = Worker>,
    lane: usize,
    pace: impl Deref<Target = P>,
    clock: impl RequestClock,
    mut client: C,
) -> impl Future<Output = ()> {
    async move {
        let (worker, pace, client) = (&*worker, &*pace, &mut client);
        let lane = &worker.lanes()[lane];
        let mut runner = OperationRunner::new(worker, lane, &clock);
        let mut backoff = Backoff::default();
        let mut now = measure::now();
        loop {
            let Some(mut issued) = lane.claim(now, worker.deadline()) else {
                // Where operations are dealt there may be some in a moment.
                if !lane.waits(worker.deadline()) {
                    break;
                }
                pace.rest(WAIT).await;
                now = measure::now();
                continue;
            };
            if let Some(due) = issued.due {
                if due > now && !pace.until(due).await {
                    break;
                }
                now = worker.note_lag(due, now);
            }
            worker.note_start(now);
            client.begin(runner.id(&issued));
            let mut request = runner.open(&issued.operation);
            let (mut first_sent, mut missed) = (None, 0);
            let after = loop {
                let mut ended = match request {
                    Request::Single(call) => {
                        let sent = runner.begin(call, &issued.operation);
                        let answer = match call {
                            Single::Get => client.get(&runner.key, &mut runner.reading).await,
                            Single::Put => {
                                client.put(runner.put(&issued.operation)).await.map(|()| true)
                            }
                            Single::Delete => client.delete(&runner.key).await,
                        };
                        runner.end(call, &issued, answer, sent)
                    }
                    Request::Scan => runner.scan(client, &issued).await,
                    Request::GetBatch => runner.get_batch(client, &issued).await,
                    Request::PutBatch => runner.put_batch(client, &issued).await,
                };
                let sent = first_sent.get_or_insert(ended.sent);
                ended.missed |= missed;
                match request.next_of(issued.operation.kind) {
                    Some(next)
                        if ended.error.is_none()
                            && (issued.operation.kind != Kind::PutSeen
                                || !runner.has_seen(request, &mut issued, sent, &mut ended)) =>
                    {
                        (request, missed) = (next, ended.missed);
                    }
                    _ => break runner.record(&issued, *sent, ended),
                }
            };
            now = after.done;
            if after.connection_lost {
                pace.rest(backoff.wait()).await;
                now = measure::now();
            } else {
                backoff.reset();
            }
        }
        worker.note_stop();
    }
}
