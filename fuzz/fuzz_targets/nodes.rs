//! Lists of nodes, and what engines say of them: any text is taken or refused.
#![no_main]

use arbitrary::Arbitrary;
use lda_transport::NodeId;
use lda_transport::bootstrap::{Membership, file, kubernetes, slurm};

#[derive(Arbitrary, Debug)]
struct Said<'a> {
    list: &'a str,
    this: u8,
    count: u8,
    hosts: &'a str,
    tasks: &'a str,
    name: &'a str,
}

fn check(membership: Membership) {
    assert!(membership.this_member().is_some());
    let mut ids = membership.ids();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), membership.nodes.len());
}

libfuzzer_sys::fuzz_target!(|said: Said| {
    let this = NodeId(said.this.into());
    let _ = file::parse(said.list, "list".as_ref(), this).map(check);
    let environment = |name: &str| match name {
        "SLURM_PROCID" => Some(said.this.to_string()),
        "SLURM_NTASKS" => Some(said.count.to_string()),
        "SLURM_STEP_NODELIST" => Some(said.hosts.to_owned()),
        "SLURM_STEP_TASKS_PER_NODE" => Some(said.tasks.to_owned()),
        "HOSTNAME" => Some(said.name.to_owned()),
        _ => None,
    };
    let _ = slurm::membership(&environment, 65_000).map(check);
    let _ = kubernetes::membership(&environment, "service", said.count.into(), 7000).map(check);
});
