//! The runs of a plan.

use std::path::Path;
use std::time::{Duration, Instant};

use lda_core::random::Xoshiro256PlusPlus;

use super::super::cut::cut;
use super::super::{LabError, median};
use super::nodes::{Line, Nodes};
use super::{Kill, RecoveryPlan};

/// Roles, in the order of their runs.
const ROLES: [&str; 3] = ["master", "server", "worker"];
/// Epochs before the first kill.
const FIRST: usize = 3;

/// Runs the plan; returns the median seconds of an epoch, and all kills.
pub(super) fn run(
    plan: &RecoveryPlan,
    directory: &Path,
    program: &Path,
    tell: &dyn Fn(&str),
) -> Result<(f64, Vec<Kill>), LabError> {
    let corpus = plan.check()?;
    let absolute = |path: &Path| std::path::absolute(path).map_err(LabError::read(path));
    let (directory, program) = (absolute(directory)?, absolute(program)?);
    let documents = cut(corpus, plan.shards, &directory, &program)?;
    let start =
        |name: &str| Nodes::start(plan, &documents, directory.join("scratch").join(name), &program);
    let mut nodes = start("undisturbed")?;
    let lines = nodes.wait(|lines| lines.len() >= plan.epochs as usize)?;
    let model = nodes.end()?;
    let seconds = lines.windows(2).map(|pair| pair[1].seconds - pair[0].seconds);
    let epoch = median(seconds).unwrap_or(0.0);
    tell(&format!("undisturbed: {epoch:.3} s per epoch"));
    let (mut kills, mut numbers) = (Vec::new(), Xoshiro256PlusPlus::from_seed(plan.seed));
    for role in ROLES {
        let mut nodes = start(role)?;
        nodes.wait(|lines| lines.len() >= FIRST)?;
        for number in 0..plan.kills {
            let kill = kill(&mut nodes, role, epoch, &mut numbers)?;
            tell(&format!(
                "{role}, kill {}: {:.3} s, {} epochs again",
                number + 1,
                kill.seconds,
                kill.repeated
            ));
            kills.push(kill);
        }
        nodes.wait(|lines| lines.last().is_some_and(|line| line.epoch == plan.epochs))?;
        if nodes.end()? != model {
            let why = format!("the run in which {role}s were killed has another model");
            return Err(LabError::Network { command: "the cluster".to_owned(), why });
        }
        tell(&format!("{role}: the model is that of the undisturbed run"));
    }
    Ok((epoch, kills))
}

/// Kills a process of a role at a random moment within two epochs, and waits until an epoch has ended after
/// that.
fn kill(
    nodes: &mut Nodes,
    role: &'static str,
    epoch: f64,
    numbers: &mut Xoshiro256PlusPlus,
) -> Result<Kill, LabError> {
    std::thread::sleep(Duration::from_secs_f64(2.0 * epoch * numbers.next_f64()));
    let last = |lines: &[Line]| lines.last().copied();
    let before = nodes.lines()?;
    let Some(Line { attempt, epoch: reached, .. }) = last(&before) else {
        let why = "there is no epoch before the first kill".to_owned();
        return Err(LabError::Network { command: "the cluster".to_owned(), why });
    };
    let killed = Instant::now();
    nodes.kill(role, numbers.below(1 << 16))?;
    let lines = nodes.wait(|lines| last(lines).is_some_and(|line| line.attempt > attempt))?;
    let seconds = (killed.elapsed().as_secs_f64() - epoch).max(0.0);
    let first = lines.iter().find(|line| line.attempt > attempt).map_or(0, |line| line.epoch);
    // The last line before may have been written after it was read.
    let of_attempt = lines.iter().filter(|line| line.attempt == attempt);
    let reached = of_attempt.map(|line| line.epoch).max().unwrap_or(reached);
    Ok(Kill { role, seconds, repeated: (reached + 1).saturating_sub(first) })
}
