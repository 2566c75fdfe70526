//! A testbed on the page: what it took to set it up, and how it was configured.

use crate::result::TestbedResult;
use crate::wording::testbed_summary;
use kvdyno_core::ground::numbers::duration_text;

use super::brief::cut;

/// Most settings on the page; all of them are in `result.json`.
const SETTINGS_ON_PAGE: usize = 500;

/// A testbed on the page.
pub(super) struct TestbedCard {
    pub request: String,
    pub summary: String,
    pub steps: Vec<(String, String)>,
    pub nodes: Vec<[String; 3]>,
    pub changed: Vec<(String, String)>,
    pub configuration: Vec<(String, String)>,
}

impl TestbedCard {
    pub(super) fn new(testbed: &TestbedResult) -> TestbedCard {
        let settings = |all: &[(String, String)]| {
            let shown = all.iter().take(SETTINGS_ON_PAGE);
            shown.map(|(name, value)| (cut(name), shown_value(value))).collect()
        };
        TestbedCard {
            request: cut(&testbed.request),
            summary: cut(&testbed_summary(testbed)),
            steps: (testbed.steps.iter())
                .map(|step| (cut(&step.name), duration_text(step.took_ns as f64)))
                .collect(),
            nodes: (testbed.nodes.iter())
                .map(|node| {
                    let role = node.role.as_deref().unwrap_or_default();
                    [cut(&node.name), cut(&node.address), cut(role)]
                })
                .collect(),
            changed: settings(&testbed.changed),
            configuration: settings(&testbed.configuration),
        }
    }
}

fn shown_value(value: &str) -> String {
    if value.is_empty() { "(empty)".to_owned() } else { cut(value) }
}
