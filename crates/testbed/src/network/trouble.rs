//! Does troubles to a node's network, and undoes them: packets dropped by nftables on the bridge, as a network drops them,
//! without a word to their sender; bandwidth limited by traffic control at both ends of the node's link.
//!
//! The rules see what the bridge forwards: what the keeper asks over the bridge's own address passes.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use kvdyno_core::ground::units::{format_bytes, format_duration, format_share};
use kvdyno_core::workload::fault::{Slowness, Trouble, Way};

use super::delay::DelayLine;
use super::{CLIENTS, DEVICE, Network, in_namespace, ip, number, port, run};
use crate::error::TestbedError;

/// Returns the name of the table of nftables that holds the rules of a trouble for a node.
fn table(trouble: Trouble, number: u16) -> String {
    format!("kvdyno_{}_{number}", trouble.word())
}

impl Network {
    /// Drops packets between the node at `node` and `others`. Says by which means.
    ///
    /// # Errors
    /// [`TestbedError`] if that is done already, or the system refuses.
    pub fn cut(
        &mut self,
        node: IpAddr,
        others: &[Ipv4Addr],
        way: Way,
    ) -> Result<String, TestbedError> {
        let number = number(node)?;
        let set: Vec<String> = others.iter().map(Ipv4Addr::to_string).collect();
        let (set, port) = (set.join(", "), port(number));
        let mut rules = Vec::new();
        if way != Way::Out {
            rules.push(format!("oifname {port} ip saddr {{ {set} }} drop"));
        }
        if way != Way::In {
            rules.push(format!("iifname {port} ip daddr {{ {set} }} drop"));
        }
        self.filter(number, Trouble::Partition, &rules)?;
        Ok("nftables".to_owned())
    }

    /// Drops this share of the node's packets, both ways, by chance. Says by which means.
    ///
    /// # Errors
    /// See [`Network::cut`].
    pub fn lose(&mut self, node: IpAddr, share: f64) -> Result<String, TestbedError> {
        let number = number(node)?;
        // In hundred-thousandths, so that small shares are what they are.
        let (part, port) = ((share * 1e5).round().max(1.0), port(number));
        let drop = format!("{port} ether type ip numgen random mod 100000 < {part} drop");
        let rules = [format!("oifname {drop}"), format!("iifname {drop}")];
        self.filter(number, Trouble::Lossy, &rules)?;
        Ok(format!("nftables numgen, {} of packets each way", format_share(part / 1e5)))
    }

    /// Gives the node's network less bandwidth, or more delay. Says by which means.
    ///
    /// # Errors
    /// See [`Network::cut`].
    pub fn slow(&mut self, node: IpAddr, slowness: Slowness) -> Result<String, TestbedError> {
        let number = number(node)?;
        self.begin(number, Trouble::Slow)?;
        let mut used = Vec::new();
        let done = slowness
            .bandwidth()
            .map_or(Ok(()), |rate| self.limit(number, rate, &mut used))
            .and_then(|()| {
                slowness.delay().map_or(Ok(()), |delay| self.delay(number, delay, &mut used))
            });
        if let Err(error) = done {
            let _ = self.heal(node, Trouble::Slow);
            return Err(error);
        }
        Ok(used.join(", "))
    }

    fn limit(&self, number: u16, rate: u64, used: &mut Vec<String>) -> Result<(), TestbedError> {
        // A bucket of 20 ms, and of some packets at least; what waits longer than 400 ms is dropped.
        let (bits, burst) = (rate * 8, (rate / 50).max(16 << 10));
        let tbf = format!("tbf rate {bits}bit burst {burst}b latency 400ms");
        let line = |device: &str| format!("tc qdisc replace dev {device} root handle 1: {tbf}");
        in_namespace(self.node(number)?, &line(DEVICE))?;
        self.at_hub(&line(&port(number)))?;
        used.push(format!("tc tbf, {}/s each way", format_bytes(rate)));
        Ok(())
    }

    /// Delays packets by netem, which not every kernel has; else by a delay line of kvdyno's own.
    fn delay(
        &mut self,
        number: u16,
        delay: Duration,
        used: &mut Vec<String>,
    ) -> Result<(), TestbedError> {
        let (micros, limited) = (delay.as_micros(), !used.is_empty());
        // Behind the limit of bandwidth, if there is one.
        let place = if limited { "parent 1:1 handle 2:" } else { "root handle 2:" };
        let netem =
            format!("tc qdisc add dev {DEVICE} {place} netem delay {micros}us limit 1000000");
        let node = self.node(number)?;
        let shown = format_duration(delay);
        if in_namespace(node, &netem).is_ok() {
            used.push(format!("tc netem, {shown} for each packet that it sends"));
            return Ok(());
        }
        let line = DelayLine::lay(node, ip(number), delay)?;
        self.delays.insert(number, line);
        used.push(format!("a delay line over a TUN device (no netem in this kernel), {shown}"));
        Ok(())
    }

    /// Undoes what [`Network::cut`], [`Network::lose`] or [`Network::slow`] has done to a node. Says by
    /// which means.
    ///
    /// # Errors
    /// [`TestbedError`] if there is nothing to undo, or the system refuses.
    pub fn heal(&mut self, node: IpAddr, trouble: Trouble) -> Result<String, TestbedError> {
        let number = number(node)?;
        let Some(place) = self.troubles.iter().position(|known| *known == (number, trouble)) else {
            let name = trouble.word();
            return Err(TestbedError::Node(format!("there is no `{name}` to undo at {node}")));
        };
        let used = match trouble {
            Trouble::Partition | Trouble::Lossy => {
                let words = format!("delete table bridge {}", table(trouble, number));
                run(&self.hub, Path::new("nft"), [words])?;
                "rules of nftables removed"
            }
            Trouble::Slow => {
                let remove = |device: &str| format!("tc qdisc del dev {device} root 2>&1 || :");
                in_namespace(self.node(number)?, &remove(DEVICE))?;
                self.at_hub(&remove(&port(number)))?;
                self.delays.remove(&number);
                "traffic control removed"
            }
        };
        self.troubles.swap_remove(place);
        Ok(used.to_owned())
    }

    /// Sets the links of these nodes `up` or `down`, as when a cable is pulled.
    ///
    /// # Errors
    /// [`TestbedError`] if one is no node's address, or the system refuses.
    pub fn link(&mut self, nodes: &[IpAddr], state: &str) -> Result<(), TestbedError> {
        let mut script = String::new();
        for node in nodes {
            script += &format!("ip link set {} {state}; ", port(number(*node)?));
        }
        self.at_hub(&script)
    }

    /// Returns the address of the clients.
    #[must_use]
    pub fn clients_address(&self) -> Ipv4Addr {
        ip(CLIENTS)
    }

    /// Notes a trouble, and refuses a second one of its kind: the two would be undone as one.
    fn begin(&mut self, number: u16, trouble: Trouble) -> Result<(), TestbedError> {
        if self.troubles.contains(&(number, trouble)) {
            let (name, node) = (trouble.word(), ip(number));
            let message =
                format!("the fault `{name}` is already active on {node}; repair it first");
            return Err(TestbedError::Node(message));
        }
        self.troubles.push((number, trouble));
        Ok(())
    }

    fn filter(
        &mut self,
        number: u16,
        trouble: Trouble,
        rules: &[String],
    ) -> Result<(), TestbedError> {
        self.begin(number, trouble)?;
        let table = table(trouble, number);
        let mut text = format!(
            "add table bridge {table}; add chain bridge {table} passing \
             {{ type filter hook forward priority 0; policy accept; }}; "
        );
        for rule in rules {
            text += &format!("add rule bridge {table} passing {rule}; ");
        }
        // All or nothing: one transaction.
        let done = run(&self.hub, Path::new("nft"), [text]);
        if done.is_err() {
            self.troubles.pop();
        }
        done
    }
}
