//! A node that is a pod of Kubernetes.
//!
//! Pods of an indexed Job and of a StatefulSet have names that can be known beforehand: the Job's or set's, and a
//! number. Under a headless service, whose name is the pods' `subdomain`, these are names of the DNS. A Job says a
//! pod's number by `JOB_COMPLETION_INDEX` too.
//!
//! How many there are Kubernetes does not say: the program is told, as by an argument that is the Job's `completions`.
//! Where servers are a StatefulSet and workers a Job, put the [`addresses`] of both one after the other.

use super::{Environment, Error, MOST, Placed, Started, number, required};
use crate::transport::NodeId;

/// Addresses of pods of one name: numbers 0 to `count`, with nodes' numbers from `first`.
///
/// ```
/// use lda_transport::bootstrap::kubernetes::addresses;
///
/// let servers = addresses("lda-server", "lda", 2, 7000, 0);
/// let workers = addresses("lda-worker", "lda", 8, 7000, 2);
/// assert_eq!(servers[1].address.as_deref(), Some("lda-server-1.lda:7000"));
/// assert_eq!((workers[7].id.0, workers.len()), (9, 8));
/// ```
pub fn addresses(name: &str, service: &str, count: u32, port: u16, first: u32) -> Vec<Placed> {
    let place = |pod: u32| Placed {
        id: NodeId(first + pod),
        address: Some(format!("{name}-{pod}.{service}:{port}")),
        role: None,
    };
    (0..count).map(place).collect()
}

/// Name and number of this pod.
///
/// # Errors
/// [`enum@Error`].
pub fn pod(environment: Environment<'_>) -> Result<(String, u32), Error> {
    let host =
        required(environment, "HOSTNAME", "run in a pod of an indexed Job or a StatefulSet")?;
    let wrong =
        |why: &str| Error::Value { name: "HOSTNAME", value: host.clone(), why: why.to_owned() };
    // A pod with a subdomain may have its full name there.
    let short = host.split('.').next().unwrap_or_default();
    let (name, at) = short
        .rsplit_once('-')
        .and_then(|(name, at)| Some((name, at.parse::<u32>().ok()?)))
        .ok_or_else(|| wrong("a name that ends with a number is expected, as lda-3"))?;
    if let Some(index) = environment("JOB_COMPLETION_INDEX") {
        let index = number("JOB_COMPLETION_INDEX", &index)?;
        if index != at {
            return Err(wrong(
                "JOB_COMPLETION_INDEX has another number: leave the pod's hostname as it is",
            ));
        }
    }
    Ok((name.to_owned(), at))
}

/// What the pod's name says: it is one of `count`, which are under this headless service.
///
/// # Errors
/// [`enum@Error`].
pub fn started(
    environment: Environment<'_>,
    service: &str,
    count: u32,
    port: u16,
) -> Result<Started, Error> {
    let (name, this) = pod(environment)?;
    if this >= count || count as usize > MOST {
        let value = environment("HOSTNAME").unwrap_or_default();
        let why = format!("one of {count} pods is expected, with numbers from 0");
        return Err(Error::Value { name: "HOSTNAME", value, why });
    }
    let nodes = addresses(&name, service, count, port, 0);
    Ok(Started { this: NodeId(this), nodes, job: Some(name) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::tests::with;

    #[test]
    fn pods_are_known_by_their_names() {
        let started = |host, index: Option<&str>| {
            let mut pairs = vec![("HOSTNAME", host)];
            pairs.extend(index.map(|index| ("JOB_COMPLETION_INDEX", index)));
            with(&pairs, |environment| super::started(environment, "svc", 4, 7000))
        };
        for (host, index) in [("lda-x-3", Some("3")), ("lda-x-3", None), ("lda-x-3.svc", Some("3"))]
        {
            let started = started(host, index).unwrap();
            assert_eq!((started.this, started.job.as_deref()), (NodeId(3), Some("lda-x")));
            assert_eq!(started.place().unwrap().address.as_deref(), Some("lda-x-3.svc:7000"));
            assert_eq!(started.nodes[0].address.as_deref(), Some("lda-x-0.svc:7000"));
        }
        for (host, index) in [
            ("lda", None),
            ("lda-x", None),
            ("lda-4", None),
            ("lda-3", Some("2")),
            ("lda-3", Some("x")),
        ] {
            assert!(started(host, index).is_err(), "{host}");
        }
    }
}
