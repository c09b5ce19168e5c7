//! English stop words.

/// Articles, pronouns, prepositions, conjunctions, auxiliaries, a few adverbs of degree and time,
/// and contractions, in lower case.
const ENGLISH: &str = "\
a an the this that these those such same other another each every either neither both all any \
some no none not nor only own much many more most less least few several enough \
i me my mine myself we us our ours ourselves you your yours yourself yourselves \
he him his himself she her hers herself it its itself they them their theirs themselves \
one ones who whom whose which what whatever whichever whoever someone somebody something anyone \
anybody anything everyone everybody everything nobody nothing \
and or but if because as until while of at by for with without within about against between \
among into onto through throughout during before after above below over under to from up down \
in out on off upon toward towards across along around behind beside besides beyond despite \
except inside near outside per since than though although unless via whereas whether \
am is are was were be been being have has had having do does did doing done \
will would shall should can could may might must ought cannot let get gets got \
again further then once here there where when why how now ever never always often sometimes \
already yet still also too very quite rather just even almost however therefore thus hence \
else instead otherwise perhaps maybe so \
i'm you're he's she's it's we're they're i've you've we've they've i'd you'd he'd she'd we'd \
they'd i'll you'll he'll she'll we'll they'll isn't aren't wasn't weren't hasn't haven't hadn't \
doesn't don't didn't won't wouldn't shan't shouldn't can't couldn't mustn't mightn't needn't \
let's that's who's what's here's there's when's where's why's how's";

/// Iterates over the list.
pub(super) fn english() -> impl Iterator<Item = &'static str> {
    ENGLISH.split_ascii_whitespace()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn words_are_lower_case_and_come_once() {
        let words: Vec<_> = english().collect();
        assert_eq!(words.iter().collect::<BTreeSet<_>>().len(), words.len());
        for word in words {
            assert!(word.bytes().all(|b| b.is_ascii_lowercase() || b == b'\''), "{word}");
        }
    }
}
