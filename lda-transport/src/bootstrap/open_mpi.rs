//! Nodes started by `mpirun` of Open MPI.
//!
//! `mpirun` provides the rank and the number of ranks, and no addresses: the MPI transport needs
//! none. A program that uses `mpirun` only as a launcher has to add the addresses.

use super::{BootstrapError, Environment, Member, Membership, rank_and_size};
use crate::transport::NodeId;

/// Describes this process as a rank of `mpirun`.
///
/// # Errors
/// [`BootstrapError`] if the variables of `mpirun` are unset or invalid.
pub fn membership(environment: Environment<'_>) -> Result<Membership, BootstrapError> {
    let names = ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"];
    let (this, count) = rank_and_size(environment, names, "start the program with mpirun")?;
    let place = |id| Member { id: NodeId(id), address: None, role: None };
    let nodes = (0..count).map(place).collect();
    // Created by the daemon of the run, equal for all its processes.
    let job = environment("PMIX_NAMESPACE").or_else(|| environment("OMPI_MCA_ess_base_jobid"));
    Ok(Membership { this: NodeId(this), nodes, job })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::tests::with;

    #[test]
    fn ranks_become_node_numbers() {
        let names = ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"];
        let membership = |rank, size| with(&[(names[0], rank), (names[1], size)], membership);
        let fourth = membership("3", "4").unwrap();
        assert_eq!((fourth.this, fourth.ids().len()), (NodeId(3), 4));
        for (rank, size) in [("4", "4"), ("x", "4"), ("0", "-1"), ("0", "4000000000")] {
            assert!(membership(rank, size).is_err(), "{rank} {size}");
        }
        let error = with(&[(names[0], "0")], super::membership).unwrap_err().to_string();
        assert!(error.starts_with("OMPI_COMM_WORLD_SIZE is not set"), "{error}");
    }
}
