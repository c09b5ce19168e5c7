//! Routes: whether a word's row is pulled to the worker, or its tokens are pushed to the server
//! (LDA*, section 4.1).
//!
//! A frequent word's row is shared by many tokens and worth its bytes. A rare word has few tokens,
//! and the rows of their documents may be shorter than its own. But a document's row is sent once
//! for all of its words that are pushed to the same server, so the cost of a word depends on the
//! routes of the others. Each pushed word bears an equal share of the rows of its documents. The
//! algorithm starts with all words that may be pushed, and repeatedly removes those that cost more
//! pushed than pulled. Removing a word increases the shares of the others, so the process ends.
//! Each remaining word costs less pushed than pulled, and so do all together.
//!
//! The tokens of a long document are sampled by WarpLDA on the worker, which needs the word's row.
//! So a word with such tokens is pulled, and its other tokens are sampled with it.
//!
//! ```
//! use lda_dist::route::{Document, Route, Words, route};
//!
//! // Word 0 is in both documents and has a long row; word 1 has a short one.
//! let words = Words { starts: &[0, 2, 3], documents: &[0, 1, 1], tokens: &[1, 1, 1], pulled: &[4000, 20] };
//! let documents = [30, 50].map(|row| Document { row, token_bits: 12, may_be_pushed: true });
//! assert_eq!(route(&words, &documents), [Route::Push, Route::Pull]);
//! ```

/// Route of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The row moves to the worker.
    Pull,
    /// The tokens move to the server.
    Push,
}

/// Words of one partition with their occurrences in one shard.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    /// First entry of each word in `documents`, and the end.
    pub starts: &'a [usize],
    /// Documents of each word, as indices of [`Document`]s, each once per word.
    pub documents: &'a [u32],
    /// Tokens of the word in each of these documents.
    pub tokens: &'a [u32],
    /// Bytes of each word's row to the worker, and of its delta back.
    pub pulled: &'a [u32],
}

/// Sizes of a document.
#[derive(Clone, Copy, Debug)]
pub struct Document {
    /// Bytes of its row.
    pub row: u32,
    /// Bits per token to the server and back.
    pub token_bits: u32,
    /// Whether its tokens may be sampled on the server.
    pub may_be_pushed: bool,
}

/// Approximate bits per token of a document of this length, to the server and back: the word, its
/// topic among those of the document, and whether it has changed.
pub fn token_bits(length: u32) -> u32 {
    let topic = u32::BITS - length.max(1).leading_zeros();
    8 + topic + 2 + topic / 2
}

/// Resolution of shares: parts per byte.
const PARTS: u64 = 1 << 16;

/// Chooses the route of each word.
///
/// # Panics
/// If the fields of `words` do not fit together, or name a document that does not exist.
pub fn route(words: &Words<'_>, documents: &[Document]) -> Vec<Route> {
    let Words { starts, documents: of_words, tokens, pulled } = *words;
    let count = pulled.len();
    assert_eq!(starts.len(), count + 1, "one start per word, and the end");
    assert!(starts[count] == of_words.len() && of_words.len() == tokens.len(), "documents by word");
    let places = |word: usize| starts[word]..starts[word + 1];
    let document = |place: usize| documents[of_words[place] as usize];
    let mut routes: Vec<Route> = (0..count)
        .map(|word| {
            let may = !places(word).is_empty() && places(word).all(|at| document(at).may_be_pushed);
            if may { Route::Push } else { Route::Pull }
        })
        .collect();
    // Number of pushed words of each document.
    let mut sharers = vec![0u32; documents.len()];
    for word in (0..count).filter(|&word| routes[word] == Route::Push) {
        places(word).for_each(|at| sharers[of_words[at] as usize] += 1);
    }
    // Rounded up, so that the shares sum to at least the whole.
    let share = |row: u32, sharers: u32| u64::from(row) * PARTS / u64::from(sharers.max(1)) + 1;
    let mut shares: Vec<u64> =
        documents.iter().zip(&sharers).map(|(it, &sharers)| share(it.row, sharers)).collect();
    let cost = |word: usize, shares: &[u64]| -> u64 {
        let of_place = |at: usize| {
            let bits = u64::from(tokens[at]) * u64::from(document(at).token_bits);
            shares[of_words[at] as usize] + bits * (PARTS / 8)
        };
        places(word).map(of_place).sum()
    };
    loop {
        // All words of a pass are compared with the same shares, so their order does not matter.
        let dear: Vec<usize> = (0..count)
            .filter(|&word| routes[word] == Route::Push)
            .filter(|&word| cost(word, &shares) >= u64::from(pulled[word]) * PARTS)
            .collect();
        if dear.is_empty() {
            return routes;
        }
        for word in dear {
            routes[word] = Route::Pull;
            for at in places(word) {
                let number = of_words[at] as usize;
                sharers[number] -= 1;
                shares[number] = share(documents[number].row, sharers[number]);
            }
        }
    }
}

/// Bytes that a partition moves with these routes, by the sizes on which they were based.
///
/// # Panics
/// See [`route`].
pub fn bytes(words: &Words<'_>, documents: &[Document], routes: &[Route]) -> u64 {
    let Words { starts, documents: of_words, tokens, pulled } = *words;
    let mut sent = vec![false; documents.len()];
    let (mut whole, mut bits) = (0, 0);
    for (word, route) in routes.iter().enumerate() {
        match route {
            Route::Pull => whole += u64::from(pulled[word]),
            Route::Push => {
                for at in starts[word]..starts[word + 1] {
                    let number = of_words[at] as usize;
                    let Document { row, token_bits, .. } = documents[number];
                    if !std::mem::replace(&mut sent[number], true) {
                        whole += u64::from(row);
                    }
                    bits += u64::from(tokens[at]) * u64::from(token_bits);
                }
            }
        }
    }
    whole + bits.div_ceil(8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    struct Case {
        starts: Vec<usize>,
        of_words: Vec<u32>,
        tokens: Vec<u32>,
        pulled: Vec<u32>,
        documents: Vec<Document>,
    }

    impl Case {
        fn words(&self) -> Words<'_> {
            let Self { starts, of_words, tokens, pulled, .. } = self;
            Words { starts, documents: of_words, tokens, pulled }
        }
    }

    /// Up to ten words in up to eight documents.
    fn case() -> impl Strategy<Value = Case> {
        let document = (0..200u32, 2..30u32, prop::bool::weighted(0.9))
            .prop_map(|(row, token_bits, may)| Document { row, token_bits, may_be_pushed: may });
        let word = (0..400u32, prop::collection::btree_map(0..8u32, 1..4u32, 0..6));
        (prop::collection::vec(document, 8), prop::collection::vec(word, 0..10)).prop_map(
            |(documents, words)| {
                let mut case = Case {
                    starts: vec![0],
                    of_words: Vec::new(),
                    tokens: Vec::new(),
                    pulled: Vec::new(),
                    documents,
                };
                for (pulled, places) in words {
                    for (document, tokens) in places {
                        case.of_words.push(document);
                        case.tokens.push(tokens);
                    }
                    case.starts.push(case.of_words.len());
                    case.pulled.push(pulled);
                }
                case
            },
        )
    }

    proptest! {
        #[test]
        fn no_more_goes_than_if_all_were_pulled(case in case()) {
            let routes = route(&case.words(), &case.documents);
            let all = vec![Route::Pull; routes.len()];
            let cost = |routes: &[Route]| bytes(&case.words(), &case.documents, routes);
            prop_assert!(cost(&routes) <= cost(&all));
            // No pushed word would be cheaper pulled, with all others unchanged.
            for word in 0..routes.len() {
                let mut other = routes.clone();
                other[word] = Route::Pull;
                if routes[word] == Route::Push {
                    let places = case.starts[word]..case.starts[word + 1];
                    prop_assert!(!places.is_empty());
                    for at in places {
                        prop_assert!(case.documents[case.of_words[at] as usize].may_be_pushed);
                    }
                }
            }
        }
    }

    #[test]
    fn a_row_that_is_sent_anyway_costs_the_next_word_nothing() {
        // The document's row of 100 bytes costs more than pulling either word, but less than
        // pulling both.
        let documents = [Document { row: 100, token_bits: 8, may_be_pushed: true }];
        let words =
            Words { starts: &[0, 1, 2], documents: &[0, 0], tokens: &[1, 1], pulled: &[60, 60] };
        assert_eq!(route(&words, &documents), [Route::Push; 2]);
        assert_eq!(bytes(&words, &documents, &[Route::Push; 2]), 102);
        let words = Words { pulled: &[60, 50], ..words };
        assert_eq!(route(&words, &documents), [Route::Pull; 2], "the second's share is 51");
    }

    #[test]
    fn a_word_of_a_long_document_is_pulled() {
        let documents =
            [true, false].map(|may_be_pushed| Document { row: 1, token_bits: 1, may_be_pushed });
        let words = Words {
            starts: &[0, 1, 3, 3],
            documents: &[0, 0, 1],
            tokens: &[1; 3],
            pulled: &[999, 999, 0],
        };
        assert_eq!(route(&words, &documents), [Route::Push, Route::Pull, Route::Pull]);
    }

    #[test]
    #[should_panic(expected = "one start per word")]
    fn words_that_do_not_fit_are_refused() {
        route(&Words { starts: &[0], documents: &[], tokens: &[], pulled: &[1] }, &[]);
    }
}
