//! `--metrics` and `--otlp`: a run as monitoring systems see it. They listen to the run as everybody does, on a thread of
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

/// What monitoring systems are told, and by whom.
pub struct Metering {
    told: Told,
    scraped: Option<Scraped>,
    pushed: Option<Pushed>,
}

/// What they are told, as it stands.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Metrics>>);

impl Told {
    fn look(&self) -> MutexGuard<'_, Metrics> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Metering {
    /// Serves and pushes what is asked for; `None` if nothing is.
    ///
    /// # Errors
    /// [`Failure`] if an address cannot be read or served on.
    pub fn open(asked: &MetricsArguments) -> Result<Option<Metering>, Failure> {
        if asked.metrics.is_none() && asked.otlp.is_none() {
            return Ok(None);
        }
        let told = Told::default();
        let scraped = asked.metrics.as_deref().map(|at| Scraped::open(at, told.clone()));
        let pushed = asked.otlp.as_deref().map(|url| Pushed::open(url, told.clone()));
        Ok(Some(Metering { told, scraped: scraped.transpose()?, pushed: pushed.transpose()? }))
    }

    /// Hears a run for them.
    pub fn listener(&self) -> MeteringListener {
        MeteringListener(self.told.clone())
    }

    /// The run is over: its end is pushed, and who scrapes has time to see it, unless the user has had enough.
    pub fn close(self, interrupt: &Interrupt) {
        if let Some(pushed) = self.pushed {
            pushed.close();
        }
        if let Some(scraped) = self.scraped {
            scraped.close(interrupt);
        }
    }
}

/// Hears the run for those who are told.
pub struct MeteringListener(Told);

impl Subscriber for MeteringListener {
    fn hear(&mut self, event: &Event) {
        self.0.look().hear(event);
    }
}
