//! Ranks of MPI jobs. Each test has `mpirun` start this program again, as many times as it needs ranks; what a
//! rank then does is its part.

use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use lda_transport::conformance::{self, Effort, Outcome};

mod collectives;
mod frames;
mod remote;

/// Names the part of a rank.
const PART: &str = "LDA_MPI_PART";
/// For a job: more than mpirun gives it.
const LONGEST: Duration = Duration::from_secs(150);
/// Set where a machine without MPI is a failure.
const REQUIRED: &str = "LDA_MPI_REQUIRED";

/// An `mpirun` and its ranks.
struct Job {
    mpirun: Child,
    /// Of its own: two that begin at once both make the one that they would share, and one of them gives up.
    directory: PathBuf,
}

impl Drop for Job {
    fn drop(&mut self) {
        // It has taken away what it has made there, or somebody looks for what it left.
        let _ = fs::remove_dir(&self.directory);
    }
}

/// Starts ranks with a part; none where there is no `mpirun`.
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
fn launch(ranks: u32, part: &str, more: &[(&str, &str)]) -> Option<Job> {
    static JOBS: AtomicU32 = AtomicU32::new(0);
    let number = JOBS.fetch_add(1, Ordering::Relaxed);
    let directory = env::temp_dir().join(format!("lda-mpi-{}-{number}", process::id()));
    fs::create_dir_all(&directory).unwrap();
    let mut mpirun = Command::new("mpirun");
    mpirun
        .args(["-n", &ranks.to_string()])
        .arg(env::current_exe().unwrap())
        .args(["a_rank", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(PART, part)
        .envs(more.iter().copied())
        // More ranks than cores, as whoever, of Open MPI before and after it had PRRTE.
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")
        .env("OMPI_MCA_mpi_yield_when_idle", "1")
        .env("OMPI_MCA_orte_tmpdir_base", &directory)
        .env("OMPI_MCA_hwloc_base_binding_policy", "none")
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("MPIEXEC_TIMEOUT", "120")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    match mpirun.spawn() {
        Ok(mpirun) => Some(Job { mpirun, directory }),
        Err(error) if env::var_os(REQUIRED).is_some() => panic!("mpirun: {error}"),
        Err(error) => {
            eprintln!("skipped, for want of mpirun: {error}");
            None
        }
    }
}

/// How a job ends, which it does before long.
fn end(mut job: Job) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = job.mpirun.try_wait().unwrap() {
            return status;
        }
        if began.elapsed() > LONGEST {
            job.mpirun.kill().unwrap();
            panic!("a job has not ended");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Has ranks do a part; how the job ended, where there is an `mpirun`.
fn run(ranks: u32, part: &str) -> Option<ExitStatus> {
    Some(end(launch(ranks, part, &[])?))
}

fn passes(ranks: u32, part: &str) {
    if let Some(status) = run(ranks, part) {
        assert!(status.success(), "{part} on {ranks} ranks: {status}");
    }
}

#[test]
#[ignore = "started by mpirun, which the other tests run"]
fn a_rank() {
    match env::var(PART).expect("a part, of one of the other tests").as_str() {
        "remote" => remote::serve(),
        "lengths" => frames::lengths(),
        "crowd" => frames::crowd(),
        "twice" => frames::twice(),
        "differ" => frames::differ(),
        "alone" => frames::alone(),
        "leaving" => frames::leaving(),
        "requests" => frames::requests(),
        "collectives" => collectives::same_by_either_way(),
        "hook" => collectives::hook(),
        "deadline" => collectives::deadline(),
        "mismatch" => collectives::mismatch(),
        "left behind" => collectives::left_behind(),
        other => panic!("no part {other}"),
    }
}

#[test]
fn the_contract_holds() {
    let Some(mut subject) = remote::Ranks::new() else { return };
    let effort = Effort { bytes: 16 << 20, ..Effort::default() };
    let report = conformance::run(&mut subject, &effort);
    assert!(report.passed(), "{report}");
    let skipped = report.checks.iter().filter(|it| matches!(it.1, Outcome::Skipped(_))).count();
    assert_eq!(skipped, 2, "no loss, no return: {report}");
    subject.end();
}

#[test]
fn frames_of_all_lengths_arrive() {
    passes(2, "lengths");
}

#[test]
#[ignore = "20 GB: .ci/extended runs it"]
fn twenty_gigabytes_arrive() {
    // 716 MB each time, both ways together.
    let Some(job) = launch(2, "lengths", &[(frames::TIMES, "28")]) else { return };
    let status = end(job);
    assert!(status.success(), "{status}");
}

#[test]
fn seventeen_ranks_on_few_cores_talk() {
    passes(17, "crowd");
}

#[test]
fn a_process_begins_mpi_once() {
    passes(1, "twice");
}

#[test]
fn bounds_are_the_same_everywhere() {
    passes(3, "differ");
}

#[test]
fn who_asks_for_it_is_alone() {
    // Where there is no `mpirun`, there may be nothing that a rank of its own needs either.
    if let Some(status) = run(1, "alone") {
        assert!(status.success(), "with mpirun: {status}");
        let mut alone = Command::new(env::current_exe().unwrap());
        let alone = alone.args(["a_rank", "--exact", "--ignored"]).env(PART, "alone");
        let output = alone.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn who_leaves_without_a_word_ends_the_job() {
    if let Some(status) = run(3, "leaving") {
        assert!(!status.success());
    }
}

#[test]
fn requests_go_over_mpi() {
    passes(4, "requests");
}

#[test]
fn operations_are_the_same_over_mpi_and_over_frames() {
    for ranks in [1, 2, 4, 17] {
        passes(ranks, "collectives");
    }
}

#[test]
fn operations_of_mpi_end_as_arrivals() {
    passes(3, "hook");
}

#[test]
fn a_deadline_ends_operations_of_mpi_and_frames_go_on() {
    passes(3, "deadline");
}

#[test]
fn ranks_that_do_not_do_the_same_hear_of_it() {
    passes(3, "mismatch");
}

#[test]
fn operations_that_never_end_do_not_keep_mpi_from_ending() {
    passes(4, "left behind");
}
