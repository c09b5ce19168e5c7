//! Aggregates of servers: an input is merged or refused, and a merged one encodes again.
#![no_main]

use lda_dist::aggregate::{Aggregate, AggregateRequest, Aggregates, TopWords};
use lda_dist::spec::ModelSpec;

const TOPICS: u32 = 6;
const WORDS: u32 = 70;

libfuzzer_sys::fuzz_target!(|input: ([bool; 3], u8, Vec<&[u8]>)| {
    let ([evaluation, word_histogram, totals], top_words, replies) = input;
    let spec = ModelSpec::new(TOPICS, WORDS, 0.1.into(), 0.1, 1).expect("a job");
    let top_words = u32::from(top_words % 5);
    let wanted = AggregateRequest { evaluation, top_words, word_histogram, totals };
    let mut found = Aggregates::new(wanted, &spec);
    for mut reply in replies {
        if found.merge(&mut reply).is_none() {
            return;
        }
        let mut bytes = Vec::new();
        found.encode(&mut bytes);
        let mut again = Aggregates::new(wanted, &spec);
        let mut rest = &bytes[..];
        assert!(again.merge(&mut rest).is_some() && rest.is_empty());
        let top_words = |of: &Aggregates| of.get::<TopWords>(TopWords::NAME).cloned();
        if let Some((one, other)) = top_words(&found).zip(top_words(&again)) {
            let totals = [1 << 40; TOPICS as usize];
            let lists = one.lists(totals, spec.beta());
            assert!(lists.iter().all(|list| list.len() <= wanted.top_words as usize));
            assert!(lists.iter().flatten().all(|top| top.word < WORDS && top.count > 0));
            assert_eq!(lists, other.lists(totals, spec.beta()));
        }
    }
});
