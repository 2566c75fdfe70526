//! `--metrics` and `--otlp`: a run as monitoring systems see it. Both subscribe to the run's events, on a thread of
//! their own, and delay nothing.

mod pushed;
mod scraped;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kvdyno_core::load::Interrupt;
use kvdyno_report::events::Event;
use kvdyno_report::events::stream::Subscriber;
use kvdyno_report::metrics::Metrics;

use crate::args::MetricsArguments;
use crate::exit::Failure;
use pushed::Pushed;
use scraped::Scraped;

/// Metrics for monitoring systems, and the means that bring them there.
pub struct Metering {
    metrics: MetricsHandle,
    scraped: Option<Scraped>,
    pushed: Option<Pushed>,
}

/// Present metrics.
#[derive(Clone, Default)]
struct MetricsHandle(Arc<Mutex<Metrics>>);

impl MetricsHandle {
    fn look(&self) -> MutexGuard<'_, Metrics> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Metering {
    /// Serves and pushes the metrics that the options ask for; `None` if they ask for none.
    ///
    /// # Errors
    /// [`Failure`] if an address cannot be read or served on.
    pub fn open(asked: &MetricsArguments) -> Result<Option<Metering>, Failure> {
        if asked.metrics.is_none() && asked.otlp.is_none() {
            return Ok(None);
        }
        let metrics = MetricsHandle::default();
        let scraped = asked.metrics.as_deref().map(|at| Scraped::open(at, metrics.clone()));
        let pushed = asked.otlp.as_deref().map(|url| Pushed::open(url, metrics.clone()));
        Ok(Some(Metering { metrics, scraped: scraped.transpose()?, pushed: pushed.transpose()? }))
    }

    /// Makes the subscriber that fills the metrics.
    pub fn listener(&self) -> MeteringListener {
        MeteringListener(self.metrics.clone())
    }

    /// Ends with the run: its end is pushed, and a collector that scrapes has time to see it, unless the user wants
    /// to stop.
    pub fn close(self, interrupt: &Interrupt) {
        if let Some(pushed) = self.pushed {
            pushed.close();
        }
        if let Some(scraped) = self.scraped {
            scraped.close(interrupt);
        }
    }
}

/// Subscriber that fills the metrics.
pub struct MeteringListener(MetricsHandle);

impl Subscriber for MeteringListener {
    fn on_event(&mut self, event: &Event) {
        self.0.look().on_event(event);
    }
}
