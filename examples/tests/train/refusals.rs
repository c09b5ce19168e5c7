//! Failures: exit status, message, and files left behind.

use super::*;

#[test]
fn wrong_usage_has_status_2() {
    let scratch = Scratch::with_corpus("usage");
    for (line, named) in [
        ("--topics 0", "--topics"),
        ("--topics 99999999999", "--topics"),
        ("--alpha 0", "--alpha"),
        ("--alpha -1", "--alpha"),
        ("--alpha nan", "--alpha"),
        ("--alpha 1,2,3 --topics 2", "alpha has 3 values for 2 topics"),
        ("--alpha 1e39", "alpha is 1"),
        ("--alpha 3e38 --topics 2", "alpha summed over all 2 entries is above 3.4e38"),
        ("--beta 0", "--beta"),
        ("--beta NaN", "--beta"),
        ("--beta inf", "--beta"),
        ("--sampler gibbs", "hybrid"),
        ("--epochs 0", "--epochs"),
        ("--seconds -1", "--seconds"),
        ("--threads 0", "--threads"),
        ("--seed -1", "--seed"),
        ("--ranges 100000", "ranges"),
        ("--mh-steps 0", "mh-steps"),
        ("--sampler f-plus --short-length 5", "--short-length applies to the sampler hybrid"),
        ("--sampler warp --mh-steps-cap 5", "--mh-steps-cap applies to the sampler hybrid"),
        ("--learn-every 5", "--learn-every needs --learn-alpha or --learn-beta"),
        ("--learn-burn-in 5", "--learn-burn-in needs --learn-alpha or --learn-beta"),
        ("--checkpoint-keep 5", "--checkpoint-keep needs --checkpoint"),
        ("--format word", "--format"),
        ("--memory-limit lots", "--memory-limit"),
        ("--patience 3", "--held-out"),
        ("--held-out 1", "--held-out"),
        ("--relevance 2", "--relevance"),
        ("--doc-topics a.txt", ".npy"),
        ("--plot a.jpg", ".svg"),
        ("--log a.csv --doc-topics a.csv", "--log and --doc-topics"),
        ("--assignments a --log a.json", "a.json"),
        ("--log docword.txt", "PATH and --log"),
        ("--log a --evaluate-every 0", "--evaluate-every"),
        ("--stop-words none", "--stop-words"),
        ("--index-base 0", "--index-base"),
        ("--transpose", "transpose"),
        ("--frobnicate", "--frobnicate"),
        ("second", "second"),
        ("--topics 50000000 --epochs 1 --doc-topics a.csv", ".mtx"),
        ("--topics 50000000 --epochs 1 --topic-words a.npy", ".mtx"),
    ] {
        let error = scratch.fail(&format!("docword.txt --quiet {line}"), 2);
        assert!(error.contains(named), "{line}: {error}");
    }
    let error = scratch.fail("--vocabulary words.txt", 2);
    assert!(error.contains("PATH"), "{error}");
}

#[test]
fn bad_input_has_status_1() {
    let scratch = Scratch::with_corpus("bad-input");
    scratch.write("short.txt", "one\ntwo\n");
    scratch.write("empty.txt", "3\n3\n0\n");
    scratch.write("range.txt", "1\n2\n1\n1 3 1\n");
    scratch.write("negative.txt", "1\n2\n1\n1 2 -1\n");
    scratch.write("fraction.txt", "1\n2\n1\n1 2 1.5\n");
    scratch.write("header.txt", "1\n2\n2\n1 2 1\n");
    scratch.write("zero.svm", "1 0:2 3:1\n");
    scratch.write("dates.txt", "1987\nsoon\n");
    fs::write(scratch.0.join("latin.txt"), b"caf\xe9\n").unwrap();
    let packed = {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(corpus().1.as_bytes()).unwrap();
        packer.finish().unwrap()
    };
    fs::write(scratch.0.join("docword.cut.gz"), &packed[..packed.len() / 2]).unwrap();
    fs::create_dir(scratch.0.join("directory")).unwrap();
    for (line, named) in [
        ("nowhere.txt", "nowhere.txt"),
        ("docword.txt --vocabulary nowhere.txt", "nowhere.txt"),
        ("docword.txt --vocabulary short.txt", "2 words, but the corpus has 20"),
        ("docword.txt --dates dates.txt", "dates.txt"),
        ("empty.txt", "no token"),
        ("range.txt", "range.txt:4"),
        ("negative.txt", "negative.txt:4"),
        ("fraction.txt", "fraction.txt:4"),
        ("header.txt", "header.txt"),
        ("zero.svm", "set --index-base to 0"),
        ("latin.txt --format text", "UTF-8"),
        ("docword.cut.gz", "docword.cut.gz"),
        ("directory", "directory"),
    ] {
        let line = format!("{line} --topics 2 --epochs 1 --log log --assignments z --plot p.png");
        let error = scratch.fail(&line, 1);
        assert!(error.contains(named), "{line}: {error}");
    }
}

#[test]
fn unwritable_outputs_fail_before_training() {
    let scratch = Scratch::with_corpus("unwritable");
    fs::create_dir(scratch.0.join("directory")).unwrap();
    scratch.write("protected", "precious");
    let mut permissions = fs::metadata(scratch.0.join("protected")).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(scratch.0.join("protected"), permissions).unwrap();
    for (path, named) in [
        ("directory", "is a directory"),
        ("nowhere/file", "nowhere/file: cannot write"),
        ("docword.txt/file", "cannot write"),
        ("protected", "read-only"),
    ] {
        // The run would be endless if it started.
        let line = format!("docword.txt --epochs 4000000000 --plot p.svg --log {path}");
        let error = scratch.fail(&line, 1);
        assert!(error.contains(named), "{line}: {error}");
    }
    assert_eq!(scratch.read("protected"), "precious");
}

#[test]
fn a_file_is_replaced_on_success_only() {
    let scratch = Scratch::with_corpus("replaced");
    scratch.write("z.txt", "old");
    scratch.write("bad.txt", "1\n2\n1\n1 2 -1\n");
    scratch.fail("bad.txt --assignments z.txt", 1);
    assert_eq!(scratch.read("z.txt"), "old");
    scratch.succeed("docword.txt --topics 2 --epochs 1 --assignments z.txt");
    assert_eq!(scratch.topics("z.txt").len(), tokens());
}
