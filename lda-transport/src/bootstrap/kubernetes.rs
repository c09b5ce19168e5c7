//! Nodes that are pods of Kubernetes.
//!
//! The pods of an indexed Job or a StatefulSet have predictable names: the name of the Job or set,
//! and a number. With a headless service whose name is the pods' `subdomain`, these names are in
//! the DNS. A Job also sets `JOB_COMPLETION_INDEX` to the number of the pod.
//!
//! Kubernetes does not provide the number of pods to them: pass it to the program, for example as
//! an argument equal to the Job's `completions`. If the servers are a StatefulSet and the workers a
//! Job, concatenate the [`addresses`] of both.

use super::{BootstrapError, Environment, MAX_NODES, Member, Membership, number, required};
use crate::transport::NodeId;

/// Returns the nodes of `count` pods of one Job or StatefulSet: pods 0 to `count - 1`, node numbers
/// from `first`.
///
/// ```
/// use lda_transport::bootstrap::kubernetes::addresses;
///
/// let servers = addresses("lda-server", "lda", 2, 7000, 0);
/// let workers = addresses("lda-worker", "lda", 8, 7000, 2);
/// assert_eq!(servers[1].address.as_deref(), Some("lda-server-1.lda:7000"));
/// assert_eq!((workers[7].id.0, workers.len()), (9, 8));
/// ```
pub fn addresses(name: &str, service: &str, count: u32, port: u16, first: u32) -> Vec<Member> {
    let place = |pod: u32| Member {
        id: NodeId(first + pod),
        address: Some(format!("{name}-{pod}.{service}:{port}")),
        role: None,
    };
    (0..count).map(place).collect()
}

/// Returns the name of the Job or StatefulSet of this pod, and the number of the pod.
///
/// # Errors
/// [`BootstrapError`] if `HOSTNAME` is unset or has no number, or `JOB_COMPLETION_INDEX` differs
/// from it.
pub fn pod(environment: Environment<'_>) -> Result<(String, u32), BootstrapError> {
    let host =
        required(environment, "HOSTNAME", "run in a pod of an indexed Job or a StatefulSet")?;
    let wrong = |reason: &str| BootstrapError::Value {
        name: "HOSTNAME",
        value: host.clone(),
        reason: reason.to_owned(),
    };
    // A pod with a subdomain may have its fully qualified name in the variable.
    let short = host.split('.').next().unwrap_or_default();
    let (name, at) = short
        .rsplit_once('-')
        .and_then(|(name, at)| Some((name, at.parse::<u32>().ok()?)))
        .ok_or_else(|| wrong("expected a name that ends with a number, such as lda-3"))?;
    if let Some(index) = environment("JOB_COMPLETION_INDEX") {
        let index = number("JOB_COMPLETION_INDEX", &index)?;
        if index != at {
            return Err(wrong(
                "JOB_COMPLETION_INDEX has another number: do not change the pod's hostname",
            ));
        }
    }
    Ok((name.to_owned(), at))
}

/// Describes this pod as one of `count` under a headless service.
///
/// # Errors
/// [`BootstrapError`] if the pod has no number, or one that is not below `count`.
pub fn membership(
    environment: Environment<'_>,
    service: &str,
    count: u32,
    port: u16,
) -> Result<Membership, BootstrapError> {
    let (name, this) = pod(environment)?;
    if this >= count || count as usize > MAX_NODES {
        let value = environment("HOSTNAME").unwrap_or_default();
        let reason = format!("expected a pod number below {count}");
        return Err(BootstrapError::Value { name: "HOSTNAME", value, reason });
    }
    let nodes = addresses(&name, service, count, port, 0);
    Ok(Membership { this: NodeId(this), nodes, job: Some(name) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::tests::with;

    #[test]
    fn a_pod_is_identified_by_its_name() {
        let membership = |host, index: Option<&str>| {
            let mut pairs = vec![("HOSTNAME", host)];
            pairs.extend(index.map(|index| ("JOB_COMPLETION_INDEX", index)));
            with(&pairs, |environment| super::membership(environment, "svc", 4, 7000))
        };
        for (host, index) in [("lda-x-3", Some("3")), ("lda-x-3", None), ("lda-x-3.svc", Some("3"))]
        {
            let membership = membership(host, index).unwrap();
            assert_eq!((membership.this, membership.job.as_deref()), (NodeId(3), Some("lda-x")));
            assert_eq!(
                membership.this_member().unwrap().address.as_deref(),
                Some("lda-x-3.svc:7000")
            );
            assert_eq!(membership.nodes[0].address.as_deref(), Some("lda-x-0.svc:7000"));
        }
        for (host, index) in [
            ("lda", None),
            ("lda-x", None),
            ("lda-4", None),
            ("lda-3", Some("2")),
            ("lda-3", Some("x")),
        ] {
            assert!(membership(host, index).is_err(), "{host}");
        }
    }
}
