//! A node that `srun` of Slurm has started.
//!
//! Slurm says which task this is and on which hosts the tasks are. Where several are on one host, each has a port of
//! its own, one above the other. Tasks have to lie in blocks, first all of the first host, which is Slurm's way unless
//! it is told otherwise; where `SLURM_NODEID` and `SLURM_LOCALID` say that they do not, that is an error.

use super::{Environment, Error, MOST, Placed, Started, number, rank_and_size};
use crate::transport::NodeId;

const REMEDY: &str = "start the program with srun";

/// What `srun` says. The first task of a host has this port.
///
/// # Errors
/// [`enum@Error`].
pub fn started(environment: Environment<'_>, port: u16) -> Result<Started, Error> {
    let (this, count) = rank_and_size(environment, ["SLURM_PROCID", "SLURM_NTASKS"], REMEDY)?;
    let (name, list) = first(environment, ["SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"])?;
    let hosts = hosts(&list).map_err(|why| Error::Value { name, value: list.clone(), why })?;
    let (name, list) = first(environment, ["SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"])?;
    let wrong = |why: String| Error::Value { name, value: list.clone(), why };
    let tasks = tasks(&list).map_err(wrong)?;
    let sum: usize = tasks.iter().sum();
    if tasks.len() != hosts.len() || sum != count as usize {
        let why = format!("{count} tasks on {} hosts are expected", hosts.len());
        return Err(wrong(why));
    }
    let places = hosts.iter().zip(&tasks).enumerate();
    let places =
        places.flat_map(|(at, (host, &tasks))| (0..tasks).map(move |local| (at, host, local)));
    let mut nodes = Vec::new();
    for (id, (at, host, local)) in (0..).zip(places) {
        let own = u16::try_from(local).ok().and_then(|local| port.checked_add(local));
        let own = own.ok_or_else(|| wrong(format!("{local} ports above {port} there are not")))?;
        if id == this {
            let says = |name, value: usize| match environment(name) {
                Some(text) => number(name, &text).map(|number| number as usize == value),
                None => Ok(true),
            };
            if !(says("SLURM_NODEID", at)? && says("SLURM_LOCALID", local)?) {
                return Err(Error::Distribution { task: this, host: host.clone(), local });
            }
        }
        nodes.push(Placed { id: NodeId(id), address: Some(format!("{host}:{own}")), role: None });
    }
    let job = environment("SLURM_JOB_ID").map(|job| match environment("SLURM_STEP_ID") {
        Some(step) => format!("{job}.{step}"),
        None => job,
    });
    Ok(Started { this: NodeId(this), nodes, job })
}

/// How often Slurm has started this job again; 0 where it has not.
///
/// # Errors
/// [`enum@Error`].
pub fn restarts(environment: Environment<'_>) -> Result<u32, Error> {
    let name = "SLURM_RESTART_COUNT";
    environment(name).map_or(Ok(0), |text| number(name, &text))
}

fn first(
    environment: Environment<'_>,
    names: [&'static str; 2],
) -> Result<(&'static str, String), Error> {
    let found = names.into_iter().find_map(|name| Some((name, environment(name)?)));
    found.ok_or(Error::Unset { name: names[0], remedy: REMEDY })
}

/// The hosts of a list like `n[01-03,7],login`.
fn hosts(list: &str) -> Result<Vec<String>, String> {
    let mut hosts = Vec::new();
    let mut rest = list;
    while !rest.is_empty() {
        // One name, up to a comma that is in no brackets.
        let mut depth = 0;
        let end = rest.find(|letter| {
            depth += i32::from(letter == '[') - i32::from(letter == ']');
            letter == ',' && depth == 0
        });
        let (name, after) = end.map_or((rest, ""), |end| (&rest[..end], &rest[end + 1..]));
        expand(name, &mut hosts)?;
        rest = after;
    }
    if hosts.is_empty() { Err("a list of hosts is expected".to_owned()) } else { Ok(hosts) }
}

/// The hosts of one name, whose brackets stand for all of their numbers.
fn expand(name: &str, hosts: &mut Vec<String>) -> Result<(), String> {
    let mut names = vec![String::new()];
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('[') {
        let (inside, after) = after.split_once(']').ok_or("a bracket is not closed")?;
        let numbers = numbers(inside)?;
        if names.len() * numbers.len() + hosts.len() > MOST {
            return Err(format!("more than {MOST} hosts"));
        }
        names = names
            .iter()
            .flat_map(|name| numbers.iter().map(move |number| format!("{name}{before}{number}")))
            .collect();
        rest = after;
    }
    if name.is_empty() || rest.contains(']') || hosts.len() + names.len() > MOST {
        return Err(format!("{name:?} is no name of hosts"));
    }
    hosts.extend(names.into_iter().map(|name| name + rest));
    Ok(())
}

/// Numbers like `01-03,7`, as they are written.
fn numbers(list: &str) -> Result<Vec<String>, String> {
    let mut numbers = Vec::new();
    for range in list.split(',') {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| -> Result<usize, String> {
            text.parse().map_err(|_| format!("{range:?} is no range of numbers"))
        };
        let (first, last, width) = (number(from)?, number(to)?, from.len());
        if last < first || last - first >= MOST - numbers.len().min(MOST - 1) || width > 64 {
            return Err(format!("{range:?} is no range of numbers, or of too many"));
        }
        numbers.extend((first..=last).map(|number| format!("{number:0width$}")));
    }
    Ok(numbers)
}

/// Tasks of each host, from a list like `2(x3),1`.
fn tasks(list: &str) -> Result<Vec<usize>, String> {
    let mut tasks = Vec::new();
    for part in list.split(',') {
        let wrong = || format!("{part:?} is no number of tasks, as in 2(x3)");
        let (number, times) = match part.split_once("(x") {
            Some((number, times)) => (number, times.strip_suffix(')').ok_or_else(wrong)?),
            None => (part, "1"),
        };
        let number: u32 = number.parse().map_err(|_| wrong())?;
        let times: usize = times.parse().map_err(|_| wrong())?;
        if times > MOST - tasks.len().min(MOST) || number as usize > MOST {
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
    fn lists_of_hosts_are_read() {
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
    fn lists_of_tasks_are_read() {
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

    fn changed(name: &str, value: Option<&str>) -> Result<Started, Error> {
        let others = STEP.iter().copied().filter(|pair| pair.0 != name);
        let pairs: Vec<(&str, &str)> = others.chain(value.map(|value| (name, value))).collect();
        with(&pairs, |environment| started(environment, 65_535 - 1))
    }

    #[test]
    fn tasks_have_hosts_and_ports() {
        let started = changed("SLURM_JOB_ID", Some("77")).unwrap();
        let addresses: Vec<String> =
            started.nodes.into_iter().filter_map(|node| node.address).collect();
        assert_eq!(addresses, ["n1:65534", "n1:65535", "n2:65534", "n2:65535"]);
        assert_eq!((started.this, started.job.as_deref()), (NodeId(3), Some("77")));
        assert_eq!(with(&[("SLURM_RESTART_COUNT", "2")], restarts).unwrap(), 2);
        assert_eq!(with(&[], restarts).unwrap(), 0);
    }

    #[test]
    fn what_does_not_fit_is_told() {
        for (name, value, expected) in [
            ("SLURM_PROCID", None, "SLURM_PROCID is not set: start the program with srun"),
            ("SLURM_PROCID", Some("4"), "SLURM_NTASKS is \"4\": SLURM_PROCID is 4"),
            ("SLURM_STEP_NODELIST", None, "SLURM_STEP_NODELIST is not set"),
            ("SLURM_STEP_NODELIST", Some("n[1"), "SLURM_STEP_NODELIST is \"n[1\": a bracket"),
            (
                "SLURM_STEP_NODELIST",
                Some("n1"),
                "SLURM_STEP_TASKS_PER_NODE is \"2(x2)\": 4 tasks on 1 hosts",
            ),
            (
                "SLURM_STEP_TASKS_PER_NODE",
                Some("1,3"),
                "SLURM_STEP_TASKS_PER_NODE is \"1,3\": 2 ports above",
            ),
            ("SLURM_LOCALID", Some("0"), "task 3 should be number 1 of host n2"),
            ("SLURM_NODEID", Some("0"), "task 3 should be number 1 of host n2"),
        ] {
            let error = changed(name, value).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{name}: {error}");
        }
    }
}
