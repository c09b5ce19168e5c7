//! The page in a browser: opened from a file, used with keyboard and pointer, on a desktop and a
//! phone.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::time::Instant;

use lda_core::Corpus;
use lda_core::counts::{VisitRow, WordCounts};
use lda_core::eval::{Ranking, top_words};
use lda_core::model::TopicModel;
use lda_core::random::Xoshiro256PlusPlus;
use serde_json::{Value, json};

use super::Scratch;
use super::browser::{Browser, DOWN, ENTER, ESCAPE, LEFT, RIGHT};

/// Words that the page lists for the current topic.
const LISTED: &str = "return [...document.querySelectorAll('#terms li:not([hidden]) .word')]\
    .map((word) => word.textContent)";

/// The library's list.
fn expected(scratch: &Scratch, topic: usize, lambda: f64) -> Value {
    let model = TopicModel::load(scratch.0.join("m.lda")).unwrap();
    let counts = model.counts().unwrap();
    let ranking = Ranking::Relevance { lambda };
    let lists = top_words(counts, counts.beta(), 30, ranking).unwrap();
    let names = model.vocabulary().unwrap();
    lists[topic].iter().map(|top| names.word(top.word)).collect::<Vec<_>>().into()
}

fn chosen(browser: &Browser) -> usize {
    browser.text("location.hash.match(/topic.(\\d+)/)[1]").parse().unwrap()
}

#[test]
#[ignore = "needs Chromium and its chromedriver: .ci/run runs it"]
fn topics_can_be_browsed_by_keyboard() {
    let scratch = Scratch::trained("keyboard");
    let contents = scratch.report("m.lda docword.x.txt --dates dates.txt --log m.jsonl");
    let browser = Browser::start(1400, 900);
    browser.open(&scratch.page());
    browser.wait("document.querySelectorAll('.topic-row').length === 5");
    assert_eq!(browser.run("return document.querySelectorAll('.map circle').length"), 5);
    // The first arrow key on the map selects the largest topic.
    browser.run("document.querySelector('.map svg').focus()");
    browser.press(&RIGHT.to_string());
    browser.wait("document.querySelector('#terms')");
    let largest = chosen(&browser);
    let total = |topic: usize| contents["topics"][topic]["total"].as_u64().unwrap();
    assert!((0..5).all(|topic| total(topic) <= total(largest)));
    assert_eq!(browser.run(LISTED), expected(&scratch, largest, 0.6));
    assert_eq!(
        browser
            .run("return [...document.querySelectorAll('[aria-selected=true]')].map((c) => c.id)"),
        json!([format!("t{largest}")])
    );
    // At each step of the slider, the list has the library's order.
    browser.run("document.querySelector('#lambda').focus()");
    for step in (0..12).rev() {
        browser.press(&LEFT.to_string());
        let lambda = f64::from(step) / 20.0;
        assert_eq!(browser.run(LISTED), expected(&scratch, largest, lambda), "{lambda}");
    }
    assert_ne!(browser.run(LISTED), expected(&scratch, largest, 0.6));
    browser.press(&RIGHT.to_string().repeat(4));
    let address = format!("#/topic/{largest}?lambda=0.2");
    browser.wait(&format!("location.hash === '{address}'"));
    // A reload shows the same.
    browser.reload();
    browser.wait("document.querySelector('#terms')");
    assert_eq!(browser.text("location.hash"), address);
    assert_eq!(browser.text("document.querySelector('#lambda').value"), "0.2");
    assert_eq!(browser.run(LISTED), expected(&scratch, largest, 0.2));
    // To a smaller topic and back, to the list, and to the results of a word search.
    browser.run("document.querySelector('#lambda').blur()");
    browser.press("]");
    browser.wait(&format!("!location.hash.startsWith('#/topic/{largest}')"));
    browser.press("[");
    browser.wait(&format!("location.hash.startsWith('#/topic/{largest}')"));
    browser.press(&ESCAPE.to_string());
    browser.wait("location.hash.startsWith('#/topics')");
    browser.press("/");
    browser.press("word95");
    browser.wait("document.querySelector('.topic-row mark')?.textContent === 'word95'");
    browser.press(&ESCAPE.to_string());
    browser.wait("document.querySelectorAll('.topic-row').length === 5");
    browser.press("3");
    browser.wait("document.querySelector('.topic-row .number').textContent === '3'");
    assert_eq!(browser.console(), [] as [Value; 0]);
}

#[test]
#[ignore = "needs Chromium and its chromedriver: .ci/run runs it"]
fn topics_have_names_and_a_table_to_save() {
    let scratch = Scratch::trained("named");
    scratch.write("names.txt", "=Danger, \"quoted\"\n\nSea\n\n\n");
    scratch.report("m.lda docword.x.txt --topic-names names.txt --log m.jsonl");
    let browser = Browser::start(1400, 900);
    browser.open(&scratch.page());
    browser.wait("document.querySelectorAll('.topic-row').length === 5");
    assert_eq!(browser.run("return document.querySelectorAll('.topic-row strong').length"), 2);
    // Every circle has its number, with a label where there is space.
    let numbers = "return [...document.querySelectorAll('.names text')]\
        .map((text) => Number(text.textContent.split(' ')[0])).sort()";
    assert_eq!(browser.run(numbers), json!([0, 1, 2, 3, 4]));
    browser.press("/");
    browser.press("sea");
    browser.wait("document.querySelectorAll('.topic-row').length === 1");
    assert_eq!(browser.text("document.querySelector('.topic-row .number').textContent"), "2");
    let saved = browser.run_async(
        "const done = arguments[arguments.length - 1];\
         URL.createObjectURL = (blob) => { blob.text().then(done); return '#'; };\
         [...document.querySelectorAll('button')].find((b) => b.textContent === 'CSV').click();",
    );
    let saved = saved.as_str().unwrap();
    let rows: Vec<&str> = saved.lines().collect();
    assert_eq!((rows[0], rows.len()), ("topic,name,share,tokens,coherence,words", 6));
    assert!(rows[1].starts_with("0,\"'=Danger, \"\"quoted\"\"\",0."), "{saved}");
    assert!(rows[3].starts_with("2,\"Sea\",0.") && rows[3].contains("\"word"), "{saved}");
    browser.open(&format!("{}#/training", scratch.page()));
    browser.wait("document.querySelector('.chart .change')");
    assert_eq!(browser.console(), [] as [Value; 0]);
}

#[test]
#[ignore = "needs Chromium and its chromedriver: .ci/run runs it"]
fn a_delayed_query_does_not_undo_a_link() {
    let scratch = Scratch::trained("delayed");
    scratch.report("m.lda docword.x.txt --log m.jsonl");
    let browser = Browser::start(1400, 900);
    browser.open(&scratch.page());
    browser.wait("document.querySelectorAll('.topic-row').length === 5");
    // The address changes at once and its event comes later. The timer ends in between.
    browser.run(
        "let late; window.setTimeout = (call) => { late = call; return 0; };\
         const search = document.querySelector('#search');\
         search.value = 'sea'; search.dispatchEvent(new Event('input'));\
         location.hash = '#/training'; late();",
    );
    browser.wait("document.querySelector('.chart')");
    assert_eq!(browser.text("location.hash"), "#/training");
}

#[test]
#[ignore = "needs Chromium and its chromedriver: .ci/run runs it"]
fn documents_have_colours_and_letters() {
    let scratch = Scratch::trained("document");
    scratch.report("m.lda docword.x.txt --dates dates.txt");
    let browser = Browser::start(1400, 900);
    browser.open(&format!("{}#/documents", scratch.page()));
    browser.wait("document.querySelector('.document-row')");
    browser.run("document.querySelectorAll('.document-row')[4].focus()");
    browser.press(&ENTER.to_string());
    browser.wait("document.querySelector('#legend')");
    assert_eq!(browser.text("location.hash"), "#/document/4");
    // Each word has the colour and the letter of an entry of the legend, and no two entries are
    // equal.
    let legend = "[...document.querySelectorAll('#legend .swatch')].map((s) => \
        s.textContent + getComputedStyle(s).backgroundColor)";
    let words = "[...document.querySelectorAll('#text .word[data-topic]')].map((w) => { \
        const probe = document.createElement('i'); probe.style.color = \
        getComputedStyle(w).getPropertyValue('--c'); document.body.append(probe); \
        const colour = getComputedStyle(probe).color; probe.remove(); \
        return getComputedStyle(w, '::after').content.replaceAll('\"', '') + colour; })";
    assert_eq!(
        browser.run(&format!(
            "const legend = {legend}; const words = {words}; return [new Set(legend).size === \
             legend.length, words.length > 5, words.every((word) => legend.includes(word))]"
        )),
        json!([true, true, true])
    );
    // A press on an entry highlights its words.
    browser.click("#legend button");
    assert_eq!(
        browser.run(
            "const on = [...document.querySelectorAll('#text .on')]; return on.length > 0 && \
             on.every((word) => word.dataset.letter === 'a') && \
             document.querySelector('#legend button').getAttribute('aria-pressed') === 'true'"
        ),
        true
    );
    // From a document to its topic, and to a document of that topic.
    browser.click("#legend a");
    browser.wait("document.querySelector('#terms') && document.querySelector('.chart')");
    browser.click(".documents a");
    browser.wait("document.querySelector('#text')");
    browser.reload();
    browser.wait("document.querySelector('#text')");
    assert_eq!(browser.console(), [] as [Value; 0]);
}

#[test]
#[ignore = "needs Chromium and its chromedriver: .ci/run runs it"]
fn texts_are_shown_as_they_are() {
    let scratch = Scratch::new("shown");
    let text = "<b>Sea</b> & \u{202e}wave; root of a tree, sea and sand";
    scratch.write("t.txt", &format!("{text}\n").repeat(12));
    scratch.train("t.txt --topics 2 --save m.lda");
    scratch.report("m.lda t.txt");
    let browser = Browser::start(1400, 900);
    browser.open(&format!("{}#/document/3", scratch.page()));
    browser.wait("document.querySelector('#text')");
    assert_eq!(browser.text("document.querySelector('.original p').textContent"), text);
    assert_eq!(browser.run("return document.querySelectorAll('.original b').length"), 0);
    // The list begins with the text too.
    browser.open(&format!("{}#/documents", scratch.page()));
    browser.wait("document.querySelector('.document-row')");
    let row = browser.text("document.querySelector('.document-row .what').textContent");
    assert!(row.contains("<b>Sea</b> & "), "{row}");
    assert_eq!(browser.console(), [] as [Value; 0]);
}

#[test]
#[ignore = "needs Chromium and its chromedriver: .ci/run runs it"]
fn names_are_escaped() {
    let scratch = Scratch::new("hostile");
    let names = [
        "</script><img src=x onerror=\"window.broken=1\">",
        "<!--<script>",
        "&lt;b&gt;",
        "{script}",
        "\u{202e}right",
        "\"'`${1}",
    ];
    scratch.write("docword.h.txt", "2\n6\n6\n1 1 5\n1 2 4\n1 3 3\n2 4 2\n2 5 2\n2 6 1\n");
    scratch.write("vocab.h.txt", &names.map(|name| format!("{name}\n")).concat());
    scratch.write("titles.txt", "<img src=x onerror=\"window.broken=2\">\n</script>\n");
    scratch.train("docword.h.txt --topics 1 --save m.lda --log <i>.jsonl");
    let contents = scratch.report("m.lda docword.h.txt --titles titles.txt --log <i>.jsonl");
    assert_eq!(contents["words"], json!(names));
    assert_eq!(scratch.read("page.html").matches("</script>").count(), 2);
    let browser = Browser::start(1400, 900);
    for view in ["topics", "topic/0", "documents", "document/0", "training", "about"] {
        browser.open("about:blank");
        browser.open(&format!("{}#/{view}", scratch.page()));
        browser.wait("document.querySelector('#right').childElementCount > 0");
        let state = "return [window.broken ?? null, document.images.length, \
            document.querySelectorAll('i, b:not(.leading b)').length]";
        assert_eq!(browser.run(state), json!([null, 0, 0]), "{view}");
        if view == "topic/0" {
            assert_eq!(browser.run(LISTED), expected(&scratch, 0, 0.6));
        }
    }
    // The policy also blocks an injected script.
    browser.run(
        "const script = document.createElement('script'); script.textContent = \
         'window.broken = 3'; document.body.append(script)",
    );
    assert_eq!(browser.run("return window.broken ?? null"), Value::Null);
    let refused = browser.console();
    assert!(refused.len() == 1 && refused[0]["message"].to_string().contains("script-src"));
}

#[test]
#[ignore = "needs Chromium and its chromedriver: .ci/run runs it"]
fn a_phone_has_one_column_without_overflow() {
    let scratch = Scratch::trained("phone");
    scratch.report("m.lda docword.x.txt --dates dates.txt --log m.jsonl");
    let browser = Browser::start(390, 844);
    for view in ["topics", "topic/1", "documents", "document/3", "training", "about"] {
        browser.open("about:blank");
        browser.open(&format!("{}#/{view}", scratch.page()));
        browser.wait("document.querySelector('#right').childElementCount > 0");
        let widths = "return [innerWidth, document.documentElement.scrollWidth]";
        assert_eq!(browser.run(widths), json!([390, 390]), "{view}");
    }
    browser.open(&format!("{}#/topic/1", scratch.page()));
    browser.wait("document.querySelector('#terms')");
    let below = "document.querySelector('#map').getBoundingClientRect().bottom <= \
        document.querySelector('#terms').getBoundingClientRect().top";
    assert_eq!(browser.run(&format!("return {below}")), true);
    assert_eq!(browser.console(), [] as [Value; 0]);
}

#[test]
#[ignore = "needs Chromium and its chromedriver: .ci/run runs it"]
fn small_pages_work_too() {
    let scratch = Scratch::new("single");
    scratch.write("c.txt", "2\n3\n3\n1 1 2\n1 3 1\n2 3 1\n");
    scratch.train("c.txt --topics 1 --save m.lda");
    let browser = Browser::start(1000, 700);
    for options in ["", "--documents 0", "--document-words 0"] {
        scratch.report(&format!("m.lda c.txt {options}"));
        // A fragment of another page leads to a list.
        browser.open(&format!("{}#/topic/77", scratch.page()));
        browser.wait("document.querySelectorAll('.topic-row').length === 1");
        browser.run("document.querySelector('.map svg').focus()");
        browser.press(&DOWN.to_string().repeat(2));
        browser.wait("document.querySelectorAll('#terms li:not([hidden])').length === 2");
        browser.open(&format!("{}#/document/1", scratch.page()));
        browser.wait("document.querySelector('#right').childElementCount > 0");
        browser.open("about:blank");
    }
    assert_eq!(browser.console(), [] as [Value; 0]);
}

/// Counts by word of a model that was not trained.
struct Sparse {
    totals: Vec<u64>,
    rows: Vec<Vec<(u32, u32)>>,
}

impl Sparse {
    /// Each topic has 2,000 words of its own, mostly frequent ones, with Zipf's frequencies.
    fn new(topics: u32, words: usize, random: &mut impl FnMut() -> f64) -> Self {
        let mut rows = vec![BTreeMap::new(); words];
        let mut totals = Vec::new();
        for topic in 0..topics {
            let counts = (1..=2000).map(|rank| 5000 / rank + 1);
            totals.push(counts.clone().map(u64::from).sum());
            for count in counts {
                *rows[(words as f64 * random().powi(3)) as usize].entry(topic).or_default() +=
                    count;
            }
        }
        Self { totals, rows: rows.into_iter().map(|row| row.into_iter().collect()).collect() }
    }
}

impl WordCounts for Sparse {
    fn num_topics(&self) -> usize {
        self.totals.len()
    }

    fn num_words(&self) -> usize {
        self.rows.len()
    }

    fn topic_total(&self, topic: usize) -> u64 {
        self.totals[topic]
    }

    fn visit_words(&self, words: Range<usize>, visit: &mut VisitRow<'_>) {
        words.for_each(|word| visit(word, &self.rows[word]));
    }
}

/// Measures a large page; `--nocapture` prints the times.
#[test]
#[ignore = "a minute, to measure by: .ci/extended runs it"]
fn a_thousand_topics_stay_fluid() {
    const WORDS: usize = 100_000;
    let scratch = Scratch::new("large");
    let mut rng = Xoshiro256PlusPlus::from_seed(1);
    let mut random = || rng.next_f64();
    let names: String = (0..WORDS).map(|word| format!("word{word}\n")).collect();
    scratch.write("vocab.l.txt", &names);
    let vocabulary = Corpus::from_words([names.lines()]).unwrap().vocabulary().cloned();
    let model = TopicModel::from_counts(&Sparse::new(1000, WORDS, &mut random), 0.05.into(), 0.01);
    model.with_vocabulary(vocabulary).save(scratch.0.join("m.lda")).unwrap();
    let mut body = String::new();
    for pair in 0..600_000 {
        let word = (WORDS as f64 * random().powi(3)) as usize;
        body.push_str(&format!("{} {} 1\n", pair / 300 + 1, word + 1));
    }
    scratch.write("docword.l.txt", &format!("2000\n{WORDS}\n600000\n{body}"));
    let start = Instant::now();
    scratch.report("m.lda docword.l.txt --method rt");
    let size = fs::metadata(scratch.0.join("page.html")).unwrap().len();
    eprintln!("{:.1} s to make, {:.1} MB", start.elapsed().as_secs_f64(), size as f64 / 1e6);
    let browser = Browser::start(1400, 900);
    browser.open(&scratch.page());
    browser.wait("document.querySelector('.topic-row')");
    let load = "Math.round(performance.getEntriesByType('navigation')[0].loadEventEnd)";
    eprintln!("load {} ms", browser.run(&format!("return {load}")));
    measure(&browser, "slider over the list", SLIDE);
    measure(&browser, "choice of a topic", "location.hash = '#/topic/' + i * 7");
    measure(&browser, "slider over a topic", SLIDE);
    measure(&browser, "choice of a document", "location.hash = '#/document/' + i * 40");
    browser.run("location.hash = '#/topics'");
    browser.wait("document.querySelector('.topic-row')");
    measure(
        &browser,
        "search",
        "const box = document.querySelector('#search'); box.value = 'word' + (i + 1); \
         box.dispatchEvent(new Event('input'))",
    );
    assert_eq!(browser.console(), [] as [Value; 0]);
}

const SLIDE: &str = "const input = document.querySelector('#lambda'); input.value = (i % 20) / 20; \
    input.dispatchEvent(new Event('input'))";

/// Runs an action forty times and prints the time until the next painted frame.
fn measure(browser: &Browser, what: &str, act: &str) {
    let times = browser.run_async(&format!(
        "const done = arguments[0]; const times = []; let i = 0; \
         const next = () => {{ \
             if (i === 40) return done(times); \
             const start = performance.now(); \
             {act}; i++; \
             requestAnimationFrame(() => setTimeout(() => {{ \
                 times.push(performance.now() - start); next(); }})); \
         }}; next();"
    ));
    let mut times: Vec<f64> = serde_json::from_value(times).unwrap();
    assert_eq!(times.len(), 40);
    times.sort_by(f64::total_cmp);
    eprintln!("{what}: {:.0} ms at the median, {:.0} ms at most", times[20], times[39]);
}
