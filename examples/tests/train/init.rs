//! Runs that start from seed words or from a model.

use lda_core::model::TopicModel;

use serde_json::Value;

use super::{Scratch, WORDS};

const RUN: &str = "docword.txt --vocabulary words.txt --sampler f-plus --epochs 30 --alpha 0.1 -q";

/// φ of `word` in `topic`.
fn phi(model: &TopicModel, topic: usize, word: &str) -> f64 {
    let id = model.vocabulary().and_then(|words| words.id(word)).unwrap();
    model.phi(topic, id as usize)
}

#[test]
fn seed_words_determine_topics() {
    let scratch = Scratch::with_corpus("seeds");
    // The themes are the lower and the upper half of the words.
    for (name, first, second) in [("a.txt", "word1", "word15"), ("b.txt", "word15", "word1")] {
        scratch.write(name, &format!("# themes\n{first} word99\n{second}\n"));
        let line = format!("{RUN} -k 2 --seed-topics {name} --seed-weight 50 --save {name}.lda");
        let output = scratch.train(&line);
        assert!(output.status.success());
        let model = TopicModel::load(scratch.0.join(format!("{name}.lda"))).unwrap();
        assert!(phi(&model, 0, first) > 5.0 * phi(&model, 1, first), "{name}");
        assert!(phi(&model, 1, second) > 5.0 * phi(&model, 0, second), "{name}");
    }
    let noisy = scratch.train(&format!("{} -k 2 --seed-topics a.txt", RUN.replace(" -q", "")));
    let said = String::from_utf8(noisy.stderr).unwrap();
    assert!(said.contains("not in the documents: word99"), "{said}");
    let said = String::from_utf8(noisy.stdout).unwrap();
    assert!(said.contains(r#""seed-topics":"a.txt","seed-weight":100"#), "{said}");
}

#[test]
fn invalid_seed_words_are_refused() {
    let scratch = Scratch::with_corpus("bad-seeds");
    scratch.write("many.txt", "word1\nword2\nword3\n");
    let said = scratch.fail(&format!("{RUN} -k 2 --seed-topics many.txt"), 2);
    assert!(said.contains("many.txt: 3 lists of seeds for 2 topics"), "{said}");
    scratch.write("unknown.txt", "word1\n# a remark\n\nnowhere\n");
    let said = scratch.fail(&format!("{RUN} -k 5 --seed-topics unknown.txt"), 2);
    assert!(said.contains("unknown.txt, line 4: none of the seeds of topic 2"), "{said}");
    scratch.fail(&format!("{RUN} -k 5 --seed-weight 9"), 2);
    scratch.write("empty.txt", "# nothing\n\n");
    let said = scratch.fail(&format!("{RUN} -k 5 --seed-topics empty.txt"), 2);
    assert!(said.contains("no seed words"), "{said}");
    let said = scratch.fail(&format!("{RUN} -k 5 --seed-topics gone.txt"), 2);
    assert!(said.contains("gone.txt"), "{said}");
}

#[test]
fn a_run_continues_from_a_model() {
    let scratch = Scratch::with_corpus("from");
    scratch.succeed(&format!("{RUN} -k 2 --beta 0.02 --save first.lda"));
    let first = TopicModel::load(scratch.0.join("first.lda")).unwrap();
    let tokens = |model: &TopicModel| model.counts().unwrap().totals().iter().sum::<u64>();
    // One document with a new word and known words.
    scratch.write("new.txt", "word1 word2 fresh word1\n");
    let from = "new.txt --sampler sparse --epochs 5 -q --from first.lda --save second.lda";
    let said = scratch.succeed(from);
    assert!(said.contains(r#""from":"first.lda","from-share":1.0"#), "{said}");
    let second = TopicModel::load(scratch.0.join("second.lda")).unwrap();
    assert_eq!(tokens(&second), tokens(&first) + 4);
    assert_eq!((second.num_words(), second.num_topics()), (WORDS + 1, 2));
    assert_eq!(second.alpha(), first.alpha());
    assert_eq!(second.counts().unwrap().beta(), 0.02);
    let topic = usize::from(phi(&second, 1, "word1") > phi(&second, 0, "word1"));
    assert!(phi(&second, topic, "fresh") > phi(&second, 1 - topic, "fresh"));

    let third = from.replace("second", "third") + " -k 4 --from-share 0.5";
    scratch.succeed(&third);
    let third = TopicModel::load(scratch.0.join("third.lda")).unwrap();
    assert_eq!((tokens(&third), third.num_topics()), (tokens(&first).div_ceil(2) + 4, 4));
}

#[test]
fn a_run_from_a_model_can_be_resumed() {
    let scratch = Scratch::with_corpus("from-resumed");
    scratch.succeed(&format!("{RUN} -k 2 --save first.lda"));
    scratch.write("new.txt", "word1 word2 fresh word1\nword15 word16 other word14\n");
    let run = "new.txt --sampler light --from first.lda -q";
    scratch.succeed(&format!("{run} --epochs 6 --assignments whole.txt"));
    scratch.succeed(&format!("{run} --epochs 3 --checkpoint kept --checkpoint-every 1"));
    let resumed = "new.txt --from first.lda -q --resume kept --epochs 6 --assignments half.txt";
    scratch.succeed(resumed);
    assert_eq!(scratch.read("whole.txt"), scratch.read("half.txt"));
    // Both outputs name the initialization, and the resumed one only what it can know.
    let began = |name: &str| {
        let said: Value = serde_json::from_str(&scratch.read(name)).unwrap();
        let input = &said["options"]["input"];
        (input["pseudo-counts"].clone(), input["from-share"].clone())
    };
    let (whole, half) = (began("whole.txt.json"), began("half.txt.json"));
    assert!(whole.0.is_string() && whole.0 == half.0, "{whole:?} {half:?}");
    assert!(whole.1 == 1.0 && half.1.is_null(), "{whole:?} {half:?}");
    scratch.fail(&format!("{resumed} --from-share 0.5"), 2);
    let said = scratch.fail("new.txt -q --resume kept --epochs 9", 1);
    assert!(said.contains("another corpus"), "{said}");
}

#[test]
fn models_that_do_not_fit_are_refused() {
    let scratch = Scratch::with_corpus("from-bad");
    scratch.succeed(&format!("{RUN} -k 3 --save first.lda"));
    let said = scratch.fail("docword.txt --vocabulary words.txt -q -k 2 --from first.lda", 2);
    assert!(said.contains("the model has 3 topics, the run 2"), "{said}");
    let said = scratch.fail("docword.txt -q --from first.lda", 2);
    assert!(said.contains("--from:") && said.contains("vocabulary"), "{said}");
    let said = scratch.fail("docword.txt -q --from gone.lda", 1);
    assert!(said.contains("gone.lda"), "{said}");
    let said = scratch.fail("docword.txt -q --from words.txt", 1);
    assert!(said.contains("words.txt"), "{said}");
}
