//! Nodes started by `srun` of Slurm.
//!
//! Slurm provides the number of the task and the hosts of all tasks. Tasks on the same host get
//! consecutive ports. The tasks must be distributed in blocks, that is first all tasks of the first
//! host, which is Slurm's default; it is an error if `SLURM_NODEID` and `SLURM_LOCALID` show
//! another distribution.

use super::{BootstrapError, Environment, MAX_NODES, Member, Membership, number, rank_and_size};
use crate::transport::NodeId;

const REMEDY: &str = "start the program with srun";

/// Describes this process as a task of `srun`. The first task of each host has the port `port`, the
/// others the ports above it.
///
/// # Errors
/// [`BootstrapError`] if the variables of `srun` are unset, invalid or contradictory.
pub fn membership(environment: Environment<'_>, port: u16) -> Result<Membership, BootstrapError> {
    let (this, count) = rank_and_size(environment, ["SLURM_PROCID", "SLURM_NTASKS"], REMEDY)?;
    let (name, list) = first(environment, ["SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"])?;
    let hosts = hosts(&list).map_err(|reason| BootstrapError::Value {
        name,
        value: list.clone(),
        reason,
    })?;
    let (name, list) = first(environment, ["SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"])?;
    let wrong = |reason: String| BootstrapError::Value { name, value: list.clone(), reason };
    let tasks = tasks(&list).map_err(wrong)?;
    let sum: usize = tasks.iter().sum();
    if tasks.len() != hosts.len() || sum != count as usize {
        let reason = format!("expected {count} tasks on {} hosts", hosts.len());
        return Err(wrong(reason));
    }
    let places = hosts.iter().zip(&tasks).enumerate();
    let places =
        places.flat_map(|(at, (host, &tasks))| (0..tasks).map(move |local| (at, host, local)));
    let mut nodes = Vec::new();
    for (id, (at, host, local)) in (0..).zip(places) {
        let own = u16::try_from(local).ok().and_then(|local| port.checked_add(local));
        let own =
            own.ok_or_else(|| wrong(format!("there are fewer than {local} ports above {port}")))?;
        if id == this {
            let matches = |name, value: usize| match environment(name) {
                Some(text) => number(name, &text).map(|number| number as usize == value),
                None => Ok(true),
            };
            if !(matches("SLURM_NODEID", at)? && matches("SLURM_LOCALID", local)?) {
                return Err(BootstrapError::Distribution { task: this, host: host.clone(), local });
            }
        }
        nodes.push(Member { id: NodeId(id), address: Some(format!("{host}:{own}")), role: None });
    }
    let job = environment("SLURM_JOB_ID").map(|job| match environment("SLURM_STEP_ID") {
        Some(step) => format!("{job}.{step}"),
        None => job,
    });
    Ok(Membership { this: NodeId(this), nodes, job })
}

/// Returns how often Slurm has restarted this job; 0 if the variable is unset.
///
/// # Errors
/// [`BootstrapError`] if `SLURM_RESTART_COUNT` is not a number.
pub fn restarts(environment: Environment<'_>) -> Result<u32, BootstrapError> {
    let name = "SLURM_RESTART_COUNT";
    environment(name).map_or(Ok(0), |text| number(name, &text))
}

fn first(
    environment: Environment<'_>,
    names: [&'static str; 2],
) -> Result<(&'static str, String), BootstrapError> {
    let found = names.into_iter().find_map(|name| Some((name, environment(name)?)));
    found.ok_or(BootstrapError::Unset { name: names[0], remedy: REMEDY })
}

/// Parses a list of hosts such as `n[01-03,7],login`.
fn hosts(list: &str) -> Result<Vec<String>, String> {
    let mut hosts = Vec::new();
    let mut rest = list;
    while !rest.is_empty() {
        // The next name ends at a comma outside brackets.
        let mut depth = 0;
        let end = rest.find(|letter| {
            depth += i32::from(letter == '[') - i32::from(letter == ']');
            letter == ',' && depth == 0
        });
        let (name, after) = end.map_or((rest, ""), |end| (&rest[..end], &rest[end + 1..]));
        expand(name, &mut hosts)?;
        rest = after;
    }
    if hosts.is_empty() { Err("expected a list of hosts".to_owned()) } else { Ok(hosts) }
}

/// Expands the brackets of one name: several brackets give all combinations of their numbers.
fn expand(name: &str, hosts: &mut Vec<String>) -> Result<(), String> {
    let mut names = vec![String::new()];
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('[') {
        let (inside, after) = after.split_once(']').ok_or("a bracket is not closed")?;
        let numbers = numbers(inside)?;
        if names.len() * numbers.len() + hosts.len() > MAX_NODES {
            return Err(format!("more than {MAX_NODES} hosts"));
        }
        names = names
            .iter()
            .flat_map(|name| numbers.iter().map(move |number| format!("{name}{before}{number}")))
            .collect();
        rest = after;
    }
    if name.is_empty() || rest.contains(']') || hosts.len() + names.len() > MAX_NODES {
        return Err(format!(
            "{name:?} is not a host name, or the list has more than {MAX_NODES} hosts"
        ));
    }
    hosts.extend(names.into_iter().map(|name| name + rest));
    Ok(())
}

/// Expands numbers such as `01-03,7`, with their leading zeros.
fn numbers(list: &str) -> Result<Vec<String>, String> {
    let mut numbers = Vec::new();
    for range in list.split(',') {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| -> Result<usize, String> {
            text.parse().map_err(|_| format!("{range:?} is not a range of numbers"))
        };
        let (first, last, width) = (number(from)?, number(to)?, from.len());
        if last < first
            || last - first >= MAX_NODES - numbers.len().min(MAX_NODES - 1)
            || width > 64
        {
            return Err(format!("{range:?} is not a range of numbers, or has too many"));
        }
        numbers.extend((first..=last).map(|number| format!("{number:0width$}")));
    }
    Ok(numbers)
}

/// Parses a list of tasks per host such as `2(x3),1`.
fn tasks(list: &str) -> Result<Vec<usize>, String> {
    let mut tasks = Vec::new();
    for part in list.split(',') {
        let wrong = || format!("{part:?} is not a number of tasks such as 2(x3)");
        let (number, times) = match part.split_once("(x") {
            Some((number, times)) => (number, times.strip_suffix(')').ok_or_else(wrong)?),
            None => (part, "1"),
        };
        let number: u32 = number.parse().map_err(|_| wrong())?;
        let times: usize = times.parse().map_err(|_| wrong())?;
        if times > MAX_NODES - tasks.len().min(MAX_NODES) || number as usize > MAX_NODES {
            return Err(wrong());
        }
        tasks.extend(std::iter::repeat_n(number as usize, times));
    }
    Ok(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::tests::with;

    #[test]
    fn host_lists() {
        let list = |text: &str| hosts(text).unwrap().join(" ");
        assert_eq!(list("a"), "a");
        assert_eq!(list("n[08-11,3],login-1"), "n08 n09 n10 n11 n3 login-1");
        assert_eq!(list("r[1-2]n[1,3]-x"), "r1n1-x r1n3-x r2n1-x r2n3-x");
        for wrong in
            ["", ",", "n[", "n[1-", "n[a]", "n[2-1]", "n]", "n[1]]", "n[0-99999999]", "n[]"]
        {
            assert!(hosts(wrong).is_err(), "{wrong}");
        }
        let many = "n[0-999]".repeat(5);
        assert!(hosts(&many).is_err());
    }

    #[test]
    fn task_lists() {
        assert_eq!(tasks("2(x3),1").unwrap(), [2, 2, 2, 1]);
        for wrong in ["", "x", "2(x", "2(x3", "2(xx)", "1,", "1(x99999999999)"] {
            assert!(tasks(wrong).is_err(), "{wrong}");
        }
    }

    const STEP: [(&str, &str); 6] = [
        ("SLURM_PROCID", "3"),
        ("SLURM_NTASKS", "4"),
        ("SLURM_STEP_NODELIST", "n[1-2]"),
        ("SLURM_STEP_TASKS_PER_NODE", "2(x2)"),
        ("SLURM_NODEID", "1"),
        ("SLURM_LOCALID", "1"),
    ];

    fn changed(name: &str, value: Option<&str>) -> Result<Membership, BootstrapError> {
        let others = STEP.iter().copied().filter(|pair| pair.0 != name);
        let pairs: Vec<(&str, &str)> = others.chain(value.map(|value| (name, value))).collect();
        with(&pairs, |environment| membership(environment, 65_535 - 1))
    }

    #[test]
    fn tasks_on_one_host_have_consecutive_ports() {
        let membership = changed("SLURM_JOB_ID", Some("77")).unwrap();
        let addresses: Vec<String> =
            membership.nodes.into_iter().filter_map(|node| node.address).collect();
        assert_eq!(addresses, ["n1:65534", "n1:65535", "n2:65534", "n2:65535"]);
        assert_eq!((membership.this, membership.job.as_deref()), (NodeId(3), Some("77")));
        assert_eq!(with(&[("SLURM_RESTART_COUNT", "2")], restarts).unwrap(), 2);
        assert_eq!(with(&[], restarts).unwrap(), 0);
    }

    #[test]
    fn invalid_variables_are_reported() {
        for (name, value, expected) in [
            ("SLURM_PROCID", None, "SLURM_PROCID is not set: start the program with srun"),
            ("SLURM_PROCID", Some("4"), "SLURM_NTASKS is \"4\": SLURM_PROCID is 4"),
            ("SLURM_STEP_NODELIST", None, "SLURM_STEP_NODELIST is not set"),
            ("SLURM_STEP_NODELIST", Some("n[1"), "SLURM_STEP_NODELIST is \"n[1\": a bracket"),
            (
                "SLURM_STEP_NODELIST",
                Some("n1"),
                "SLURM_STEP_TASKS_PER_NODE is \"2(x2)\": expected 4 tasks on 1 hosts",
            ),
            (
                "SLURM_STEP_TASKS_PER_NODE",
                Some("1,3"),
                "SLURM_STEP_TASKS_PER_NODE is \"1,3\": there are fewer than 2 ports above",
            ),
            (
                "SLURM_LOCALID",
                Some("0"),
                "by the list of hosts task 3 should be number 1 on host n2",
            ),
            (
                "SLURM_NODEID",
                Some("0"),
                "by the list of hosts task 3 should be number 1 on host n2",
            ),
        ] {
            let error = changed(name, value).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{name}: {error}");
        }
    }
}
