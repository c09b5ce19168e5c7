use super::*;
use crate::corpus::CorpusBuilder;
use crate::eval::num_topics;

/// Five themes of four words each, one per document, with token order on request.
fn corpus(documents: usize, is_ordered: bool) -> Corpus {
    let mut builder = CorpusBuilder::new();
    if is_ordered {
        builder = builder.keep_order();
    }
    for d in 0..documents {
        let words = (0..12).map(|i| format!("w{}", d % 5 * 4 + (i * (i + 1) / 2 + d) % 4));
        builder.push_words(words.collect::<Vec<_>>()).unwrap();
    }
    builder.build().unwrap()
}

fn sweep() -> Sweep {
    Sweep::new([5, 2, 9, 5]).seeds(2).train(|options| options.alpha(0.1).seed(7).epochs(40))
}

fn run(sweep: &Sweep, corpus: &Corpus) -> Vec<SweepRun> {
    let mut runs = Vec::new();
    sweep
        .run(corpus, |run| {
            runs.push(run);
            Flow::Continue
        })
        .unwrap();
    runs.sort_by_key(|run| (run.topics, run.seed));
    runs
}

#[test]
fn every_number_and_seed_is_run_with_the_same_bits_on_any_threads() {
    let corpus = corpus(60, true);
    let held_out = self::corpus(20, false);
    let sweep = sweep().held_out(held_out);
    assert_eq!(sweep.left(), [(9, 7), (9, 8), (5, 7), (5, 8), (2, 7), (2, 8)]);
    let one = run(&sweep.clone().train(|options| options.threads(1)), &corpus);
    let numbers: Vec<(u32, u64)> = one.iter().map(|run| (run.topics, run.seed)).collect();
    assert_eq!(numbers, [(2, 7), (2, 8), (5, 7), (5, 8), (9, 7), (9, 8)]);
    for jobs in [1, 3, 6] {
        let other = run(&sweep.clone().jobs(jobs).train(|options| options.threads(6)), &corpus);
        for (a, b) in one.iter().zip(&other) {
            assert_eq!(a.model.fingerprint(), b.model.fingerprint());
            let measures = ModelMeasures { seconds: a.measures.seconds, ..b.measures.clone() };
            assert_eq!(a.measures, measures);
        }
    }
    // The same as a run without a sweep.
    let options = TrainOptions::new(5).alpha(0.1).seed(8).epochs(40);
    let mut trainer = Trainer::new(&corpus, &options).unwrap();
    trainer.run((), || false);
    assert_eq!(trainer.model().fingerprint(), one[3].model.fingerprint());
    let measures = &one[3].measures;
    assert_eq!(measures.cao_juan, num_topics::cao_juan(&one[3].model));
    assert_eq!((measures.epochs, measures.c_v.is_some()), (40, true));
    assert!(measures.perplexity.is_some_and(|found| found > 1.0));
}

#[test]
fn the_right_number_of_topics_is_found() {
    let runs = run(&sweep(), &corpus(100, true));
    let summaries = [2, 5, 9].map(|topics| {
        let own: Vec<&SweepRun> = runs.iter().filter(|run| run.topics == topics).collect();
        let models: Vec<TopicModel> = own.iter().map(|run| run.model.clone()).collect();
        let found = stability(&models).unwrap();
        assert_eq!(found.models.len(), 2);
        let measures: Vec<ModelMeasures> = own.iter().map(|run| run.measures.clone()).collect();
        Summary::new(topics, &measures, Some(found.mean))
    });
    for criterion in [Criterion::Npmi, Criterion::CV, Criterion::Stability, Criterion::CaoJuan] {
        assert_eq!(best(&summaries, criterion), Some(5), "{}: {summaries:?}", criterion.name());
    }
    assert_eq!(best(&summaries, Criterion::Perplexity), None, "nothing is held out");
}

#[test]
fn without_order_there_is_no_c_v() {
    let runs = run(&sweep().skip([(9, 7), (9, 8), (5, 7), (2, 7)]), &corpus(30, false));
    assert_eq!(runs.len(), 2);
    for run in runs {
        let ModelMeasures { c_v, npmi, u_mass, arun, .. } = run.measures;
        assert_eq!(c_v, None);
        assert!(npmi.is_some() && u_mass.is_some() && arun.is_some());
    }
}

#[test]
fn a_sweep_can_be_stopped_and_refuses_what_does_not_fit() {
    let corpus = corpus(30, false);
    let mut seen = 0;
    let sweep = sweep().jobs(1);
    let stop = |_| {
        seen += 1;
        Flow::Stop
    };
    sweep.run(&corpus, stop).unwrap();
    assert_eq!(seen, 1);
    let flag = Arc::new(AtomicBool::new(true));
    sweep.clone().cancel_when(flag).run(&corpus, |_| panic!("it is cancelled")).unwrap();
    let empty = Sweep::new([]).run(&corpus, |_| Flow::Continue);
    assert!(matches!(empty, Err(SweepError::Empty)));
    let zero = Sweep::new([3, 0]).run(&corpus, |_| panic!("checked first"));
    assert!(matches!(zero, Err(SweepError::Options { topics: 0, .. })));
    let small = sweep.clone().train(|options| options.memory_limit(1000));
    let refused = small.run(&corpus, |_| panic!("it does not fit")).unwrap_err();
    assert!(refused.to_string().starts_with("9 topics: "), "{refused}");
    // Two small runs fit together, two large ones do not.
    let needed = |topics| {
        let options = TrainOptions::new(topics).alpha(0.1).epochs(1).threads(2);
        options.estimate_memory(&corpus).unwrap().total()
    };
    let limited = Sweep::new([2, 3000]).train(|options| {
        options.alpha(0.1).epochs(1).threads(4).memory_limit(needed(3000) + needed(2) / 2)
    });
    assert_eq!(limited.division(&corpus, &limited.left()).unwrap(), (1, 4));
}

#[test]
fn summaries_have_means_and_deviations() {
    let of = |npmi: f64, c_v: Option<f64>| ModelMeasures {
        npmi: Some(npmi),
        c_v,
        deveaud: Some(f64::INFINITY),
        ..ModelMeasures::default()
    };
    let few = Summary::new(10, &[of(0.1, Some(0.5)), of(0.3, None)], Some(0.7));
    assert_eq!((few.topics(), few.runs()), (10, 2));
    assert!((few.mean(Criterion::Npmi).unwrap() - 0.2).abs() < 1e-12);
    assert!((few.deviation(Criterion::Npmi).unwrap() - 0.02f64.sqrt()).abs() < 1e-12);
    assert_eq!((few.mean(Criterion::CV), few.mean(Criterion::Stability)), (None, Some(0.7)));
    let many = Summary::new(20, &[of(0.2, None)], Some(0.9));
    let all = [many, few];
    assert_eq!(best(&all, Criterion::Npmi), Some(10), "the smaller of two equal ones");
    assert_eq!(best(&all, Criterion::Stability), Some(20));
    assert_eq!(best(&all, Criterion::Deveaud), None);
    for criterion in Criterion::ALL {
        assert_eq!(Criterion::ALL[criterion as usize], criterion);
    }
}
