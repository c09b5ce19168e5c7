//! Network namespaces of the nodes, all on one switch.

use std::process::{Command, Stdio};

use super::super::LabError;

/// Network namespaces, removed on drop.
#[derive(Debug)]
pub(super) struct Network {
    name: String,
    nodes: u32,
}

/// Burst size in bytes: the traffic of 10 ms, at least one packet of the largest size.
fn burst(rate: u32) -> u64 {
    (u64::from(rate) * 1_000_000 / 8 / 100).max(128 << 10)
}

impl Network {
    /// Creates namespaces for `nodes` nodes.
    ///
    /// # Errors
    /// [`LabError::Network`].
    pub fn new(nodes: u32) -> Result<Self, LabError> {
        let network = Self { name: format!("lda{}", std::process::id()), nodes };
        let Self { name, .. } = &network;
        // Remove the leftovers of a killed process with the same number.
        network.remove();
        ip(&format!("netns add {name}x"))?;
        ip(&format!("-n {name}x link add switch type bridge"))?;
        ip(&format!("-n {name}x link set switch up"))?;
        for node in 0..nodes {
            let space = network.space(node);
            ip(&format!("netns add {space}"))?;
            ip(&format!("-n {space} link add line type veth peer name port{node} netns {name}x"))?;
            ip(&format!("-n {name}x link set port{node} master switch"))?;
            ip(&format!("-n {name}x link set port{node} up"))?;
            ip(&format!("-n {space} addr add {}/24 dev line", network.address(node)))?;
            ip(&format!("-n {space} link set lo up"))?;
            ip(&format!("-n {space} link set line up"))?;
        }
        Ok(network)
    }

    fn space(&self, node: u32) -> String {
        format!("{}n{node}", self.name)
    }

    /// Address of a node.
    pub fn address(&self, node: u32) -> String {
        format!("10.77.0.{}", node + 1)
    }

    /// Limits a node's link to `rate` Mbit/s, each way.
    ///
    /// # Errors
    /// [`LabError::Network`].
    pub fn hold(&self, node: u32, rate: u32) -> Result<(), LabError> {
        let how = format!("root tbf rate {rate}mbit burst {} latency 200ms", burst(rate));
        tc(&format!("-n {} qdisc replace dev line {how}", self.space(node)))?;
        tc(&format!("-n {}x qdisc replace dev port{node} {how}", self.name))
    }

    /// Command that starts a program in a node's namespace.
    pub fn command(&self, node: u32, program: &std::path::Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space(node)]).arg(program);
        command
    }

    fn remove(&self) {
        for node in 0..self.nodes {
            let _ = ip(&format!("netns del {}", self.space(node)));
        }
        let _ = ip(&format!("netns del {}x", self.name));
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.remove();
    }
}

fn ip(words: &str) -> Result<(), LabError> {
    system("ip", words)
}

fn tc(words: &str) -> Result<(), LabError> {
    system("tc", words)
}

fn system(program: &'static str, words: &str) -> Result<(), LabError> {
    let mut command = Command::new(program);
    let output = command.args(words.split_whitespace()).stdin(Stdio::null()).output();
    let why = match output {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Err(LabError::Network { command: format!("{program} {words}"), why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_hold_a_packet() {
        assert_eq!(burst(1), 131_072);
        assert_eq!(burst(1000), 1_250_000);
    }
}
