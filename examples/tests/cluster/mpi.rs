//! Nodes as MPI ranks.

use super::*;

/// A job of this many ranks of the program.
fn job(ranks: &str, config: &Path) -> Output {
    let mut mpirun = Command::new("mpirun");
    mpirun
        .args(["-n", ranks])
        .args([env!("CARGO_BIN_EXE_lda"), "cluster", "node", "--config"])
        .arg(config)
        // More ranks than cores, as any user, with Open MPI before and after it used PRRTE.
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")
        .env("OMPI_MCA_mpi_yield_when_idle", "1")
        .env("OMPI_MCA_hwloc_base_binding_policy", "none")
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("MPIEXEC_TIMEOUT", "120");
    mpirun.output().expect("mpirun is installed")
}

#[test]
fn ranks_write_the_model_of_one_process() {
    let scratch = Scratch::new("ranks");
    let path = scratch.file("articles.txt");
    documents(&path);
    let (path, out) = (path.to_str().unwrap(), scratch.file("shards"));
    let cut = program(&["cut", path, "--out", out.to_str().unwrap(), "--shards", "4"]);
    assert!(cut.status.success());
    let config = scratch.file("run.toml");
    let text = "documents = \"shards\"\n[training]\ntopics = 4\nalpha = 0.5\nepochs = 30\n\
                workers = 2\nsave = \"model.lda\"\n";
    fs::write(&config, text).unwrap();
    let output = job("4", &config);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("worker 1") && said.contains("epoch 30: log joint per token -"),
        "{said}"
    );
    let local = scratch.file("local.lda");
    let options = ["--shards", "4", "--save", local.to_str().unwrap()];
    assert!(cluster(path.as_ref(), &options).status.success());
    assert!(fs::read(&local).unwrap() == fs::read(scratch.file("model.lda")).unwrap());

    let output = job("3", &config);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("3 MPI ranks for a master, 1 server and 2 workers: start 4"), "{said}");
}
