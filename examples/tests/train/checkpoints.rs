//! Models and checkpoints of `lda train`, and runs that are killed.

use std::time::Duration;

use lda_core::model::TopicModel;
use lda_core::random::Xoshiro256PlusPlus;
use lda_core::train::Resolved;

use super::*;

#[test]
fn a_model_is_saved() {
    let scratch = Scratch::with_corpus("save");
    let line = "docword.txt --vocabulary words.txt --topics 3 --epochs 20 --alpha 0.1";
    scratch.succeed(&format!("{line} --save m.lda --assignments z.txt"));
    let model = TopicModel::load(scratch.0.join("m.lda")).unwrap();
    let counts = model.counts().unwrap();
    let mut expected = [0; 3];
    scratch.topics("z.txt").iter().for_each(|&topic| expected[topic as usize] += 1);
    assert_eq!(counts.totals(), expected);
    assert_eq!((counts.num_words(), counts.beta(), model.alpha().get(0)), (WORDS, 0.01, 0.1));
    assert_eq!(model.vocabulary().unwrap().word(3), "word3");
    let provenance = model.provenance();
    assert_eq!(provenance.epochs, Some(20));
    let options = Resolved::from_provenance(provenance).unwrap().unwrap();
    assert_eq!((options.topics, options.alpha.get(0)), (3, 0.1));
    let notes =
        [("program", concat!("train ", env!("CARGO_PKG_VERSION"))), ("input", "docword.txt")];
    let notes = notes.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(provenance.notes, notes);
    // The same run gives the same bytes.
    scratch.succeed(&format!("{line} --save n.lda --threads 2"));
    assert_eq!(scratch.bytes("m.lda"), scratch.bytes("n.lda"));

    #[cfg(unix)]
    assert!(scratch.fail(&format!("{line} --save /dev/null"), 1).contains("device or a pipe"));
    let twice = scratch.fail(&format!("{line} --save m.svg --plot m.svg"), 2);
    assert!(twice.contains("--save and --plot both name"), "{twice}");
}

#[test]
fn a_run_can_be_resumed() {
    let scratch = Scratch::with_corpus("resume");
    let base = "docword.txt --held-out 0.2";
    let run = "--topics 4 --seed 3 --alpha 0.2 --exclude-converged-from 4";
    let whole = format!("{base} {run} --epochs 30 --assignments whole.txt --log whole.jsonl");
    let whole = scratch.succeed(&whole);
    // 12 epochs would get another warm-up than 30.
    let warm_up = scratch.log("whole.jsonl")[0]["options"]["warm-up"].clone();
    let begin = format!("{base} {run} --epochs 12 --warm-up {warm_up} --sampler f-plus");
    scratch.succeed(&format!("{begin} --checkpoint kept --checkpoint-every 5 --checkpoint-keep 3"));
    let kept = || {
        let entries = fs::read_dir(scratch.0.join("kept")).unwrap();
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        entries.map(|entry| name(entry.unwrap())).collect::<BTreeSet<_>>()
    };
    let names = [5, 10, 12].map(|epoch| format!("epoch-{epoch:010}.snapshot"));
    assert_eq!(kept(), names.into());

    // The held-out documents depend on the seed of the run.
    let rest = format!("{base} --resume kept --epochs 30 --assignments rest.txt");
    assert_eq!(scratch.succeed(&rest), whole);
    assert_eq!(scratch.topics("rest.txt"), scratch.topics("whole.txt"));
    assert!(kept().contains("epoch-0000000030.snapshot"));

    // The run is over: its results can be written again, whatever the limit of epochs says.
    for limit in ["", "--epochs 30", "--epochs 7"] {
        let again = format!("{base} --resume kept {limit} --assignments again.txt");
        assert_eq!(scratch.succeed(&again), whole, "{limit}");
        assert_eq!(scratch.topics("again.txt"), scratch.topics("whole.txt"), "{limit}");
    }
    for (line, what) in [
        (format!("{base} --resume kept --topics 5"), "the run has topics 4, and 5 was asked for"),
        (format!("{base} --resume kept --alpha 0.3"), "the run has alpha 0.2, and 0.3 was"),
        (format!("{base} --resume nowhere"), "nowhere: "),
        ("docword.txt --resume kept".to_owned(), "another corpus"),
        (format!("{begin} --checkpoint kept"), "has snapshots of another run"),
    ] {
        let error = scratch.fail(&line, 1);
        assert!(error.contains(what), "{line}: {error}");
    }
    scratch.write("kept/epoch-0000000031.snapshot", "no snapshot");
    let output = scratch.train(&format!("{base} --resume kept --epochs 31"));
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("warning: ") && told.contains("not a file of this library"), "{told}");
    assert!(told.contains("epoch-0000000030.snapshot after 30 epochs"), "{told}");
}

#[cfg(unix)]
#[test]
fn a_killed_run_resumes_with_the_same_result() {
    const EVERY: u32 = 20;
    let scratch = Scratch::with_corpus("killed");
    let line = format!(
        "docword.txt --topics 5 --seed 9 --sampler sparse --warm-up 15 --evaluate-every 10 \
         --checkpoint-every {EVERY}"
    );
    let mut rng = Xoshiro256PlusPlus::from_seed(1);
    let (mut seen, mut reached) = (0, 0);
    for kill in 0..50 {
        let begun = scratch.0.join("kept").is_dir() && reached > 0;
        let from = if begun { "--resume kept" } else { "--checkpoint kept" };
        if !begun {
            let _ = fs::remove_dir_all(scratch.0.join("kept"));
        }
        let mut command = scratch.command(&match begun {
            true => format!(
                "docword.txt --epochs 4000000000 {from} --evaluate-every 10 \
                --checkpoint-every {EVERY}"
            ),
            false => format!("{line} --epochs 4000000000 {from}"),
        });
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_micros(u64::from(rng.below(50_000))));
                // SIGKILL.
                child.kill().unwrap();
            });
            for line in &mut lines {
                let line = line.unwrap();
                if let Some(rest) = line.strip_prefix("resuming from ") {
                    let epochs = rest.rsplit(' ').nth(1).unwrap().parse::<u32>().unwrap();
                    // One interval, and the checkpoint that was being written.
                    assert!(epochs + 2 * EVERY >= seen, "kill {kill}: {epochs} of {seen}");
                    reached = epochs;
                } else if let Some(rest) = line.strip_prefix("epoch ") {
                    seen = rest.split('/').next().unwrap().parse().unwrap();
                } else {
                    let bad = ["error", "warning", "panicked"].iter().any(|bad| line.contains(bad));
                    assert!(!bad, "kill {kill}: {line}");
                }
            }
        });
        assert_eq!(child.wait().unwrap().code(), None, "it was killed");
        if reached == 0 && seen > 2 * EVERY {
            // From here on there is a checkpoint.
            reached = 1;
        }
    }
    assert!(reached > 100, "{reached}");
    let epochs = seen + 10;
    scratch.succeed(&format!("docword.txt --resume kept --epochs {epochs} --assignments z.txt -q"));
    scratch.succeed(&format!("{line} --epochs {epochs} --checkpoint other --assignments w.txt -q"));
    assert_eq!(scratch.topics("z.txt"), scratch.topics("w.txt"));
    let left = fs::read_dir(scratch.0.join("kept")).unwrap().count();
    assert_eq!(left, 2, "temporaries of killed runs are removed");
}
