//! Ranks of MPI jobs. Each test starts this program again by `mpirun`, once per rank; a variable of
//! the environment selects the code of the rank.

use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use lda_transport::conformance::{self, Effort, Outcome};

mod frames;
mod remote;

/// Variable with the code to run as a rank.
const PART: &str = "LDA_MPI_PART";
/// Longest time of a job: more than the limit of mpirun.
const LONGEST: Duration = Duration::from_secs(150);

/// A running `mpirun` with its ranks.
struct Job {
    mpirun: Child,
    /// Directory for temporary files. Two jobs that start at once would both create a shared one,
    /// and one would fail.
    directory: PathBuf,
}

impl Drop for Job {
    fn drop(&mut self) {
        // Fails if `mpirun` has left files there, which then stay for diagnosis.
        let _ = fs::remove_dir(&self.directory);
    }
}

/// Starts ranks.
fn launch(ranks: u32, part: &str, more: &[(&str, &str)]) -> Job {
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
        // Allows more ranks than cores, and root, in Open MPI before and after PRRTE.
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
    let mpirun = mpirun.spawn().expect("mpirun is installed");
    Job { mpirun, directory }
}

/// Waits for the end of a job.
fn end(mut job: Job) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = job.mpirun.try_wait().unwrap() {
            return status;
        }
        if began.elapsed() > LONGEST {
            job.mpirun.kill().unwrap();
            panic!("the job has not ended in time");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a job.
fn run(ranks: u32, part: &str) -> ExitStatus {
    end(launch(ranks, part, &[]))
}

fn passes(ranks: u32, part: &str) {
    let status = run(ranks, part);
    assert!(status.success(), "{part} on {ranks} ranks: {status}");
}

#[test]
#[ignore = "started by mpirun, which the other tests run"]
fn a_rank() {
    match env::var(PART).expect("set by the other tests").as_str() {
        "remote" => remote::serve(),
        "lengths" => frames::lengths(),
        "crowd" => frames::crowd(),
        "twice" => frames::twice(),
        "differ" => frames::differ(),
        "alone" => frames::alone(),
        "leaving" => frames::leaving(),
        "requests" => frames::requests(),
        other => panic!("no part {other}"),
    }
}

#[test]
fn the_contract_holds() {
    let mut subject = remote::Ranks::new();
    let effort = Effort { bytes: 16 << 20, ..Effort::default() };
    let report = conformance::run(&mut subject, &effort);
    assert!(report.passed(), "{report}");
    let skipped = report.checks.iter().filter(|it| matches!(it.1, Outcome::Skipped(_))).count();
    assert_eq!(skipped, 2, "ranks are not lost and do not rejoin: {report}");
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
    let status = end(launch(2, "lengths", &[(frames::TIMES, "28")]));
    assert!(status.success(), "{status}");
}

#[test]
fn seventeen_ranks_on_few_cores_exchange_frames() {
    passes(17, "crowd");
}

#[test]
fn a_process_starts_mpi_once() {
    passes(1, "twice");
}

#[test]
fn ranks_with_different_limits_fail() {
    passes(3, "differ");
}

#[test]
fn a_job_of_one_rank_needs_no_launcher() {
    passes(1, "alone");
    let mut alone = Command::new(env::current_exe().unwrap());
    let alone = alone.args(["a_rank", "--exact", "--ignored"]).env(PART, "alone");
    let output = alone.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_rank_that_exits_ends_the_job() {
    assert!(!run(3, "leaving").success());
}

#[test]
fn requests_work_over_mpi() {
    passes(4, "requests");
}
