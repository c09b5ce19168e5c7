//! A run of `lda report`, from the options to the page.

use std::fs::{self, File};

use lda_core::Corpus;
use lda_core::container::FileError;
use lda_core::corpus::read::read_vocabulary;
use lda_core::corpus::{ReadError, Vocabulary};
use lda_core::eval::{CoherenceError, TopWordsError};
use lda_core::infer::Answer;
use lda_core::model::TopicModel;
use lda_examples::documents::{Answered, DocumentsError};
use lda_examples::output::{Output, OutputError};
use lda_examples::program::StartError;
use lda_examples::reading::{self, Reading};
use thiserror::Error;

use crate::commands::report::about::Origin;
use crate::commands::report::args::Args;
use crate::commands::report::coherence::TopicCoherence;
use crate::commands::report::contents::{Contents, CorpusSize, Curve, Topic};
use crate::commands::report::curve::{CurveError, file_name};
use crate::commands::report::documents::{Chosen, Picked, Source, thousandths};
use crate::commands::report::encode::{encode, gaps};
use crate::commands::report::html;
use crate::commands::report::similar::Similar;
use crate::commands::report::terms::Terms;
use crate::commands::report::time::over_time;

/// Errors of `lda report`.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The model cannot be read.
    #[error("{0}")]
    Model(#[from] FileError),
    /// The topics of the documents cannot be inferred.
    #[error(transparent)]
    Documents(#[from] DocumentsError),
    /// The model's words cannot be ranked.
    #[error(transparent)]
    TopWords(#[from] TopWordsError),
    /// The coherence of the topics cannot be measured.
    #[error(transparent)]
    Coherence(#[from] CoherenceError),
    /// A log cannot be read.
    #[error("--log: {0}")]
    Curve(#[from] CurveError),
    /// The titles cannot be read.
    #[error("--titles: {0}")]
    Titles(ReadError),
    /// The names of topics cannot be read.
    #[error("--topic-names: {0}")]
    TopicNames(ReadError),
    /// The page cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The program could not start.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl ReportError {
    /// Exit status: 2 if an option is the cause, 1 otherwise.
    pub fn status(&self) -> u8 {
        match self {
            Self::Documents(error) if error.is_usage() => 2,
            _ => 1,
        }
    }
}

/// Reads the model and the documents, infers topics, and writes the page.
///
/// # Errors
/// [`ReportError`].
pub fn run(args: &Args) -> Result<(), ReportError> {
    args.inference.program.start()?;
    let note = |text: &str| args.inference.program.note(text);
    let output = Output::create(&args.out)?;
    let curves = args.log.iter().map(|path| Curve::read(path)).collect::<Result<_, _>>()?;
    let method = args.inference.method.method().map_err(DocumentsError::from)?;
    // The file is untrusted input, so all of it is checked.
    let model = TopicModel::load(&args.model)?;
    let inference = args.inference.inference(&model)?;
    let reading = &args.inference.reading;
    let (longest, line) = (args.document_text, &mut |text: &str| note(text));
    let Reading { corpus, texts, .. } =
        reading::read_with_texts(&args.path, reading, Some(&model), longest, line)
            .map_err(DocumentsError::from)?;
    let titles = titles(args, &corpus)?;
    let topic_names = topic_names(args, &model)?;
    note(&format!("topics of {} documents by {}", corpus.num_documents(), method.name()));
    let Answered { translation, documents, answers } =
        Answered::new(&corpus, &inference, &args.model)?;

    note(&format!("distances and map of {} topics", model.num_topics()));
    let similar = Similar::new(&model);
    let coherence = TopicCoherence::new(&model, &documents)?;
    drop(documents);

    let terms = Terms::new(&model, &tokens_of_topics(&answers, model.num_topics()))?;
    let chosen = Chosen::new(&inference, &answers, args.documents);
    let source = Source {
        corpus: &corpus,
        translation: &translation,
        titles: titles.as_ref(),
        texts: texts.as_deref(),
        inference: &inference,
        answers: &answers,
    };
    let picked = source.pick(&chosen.documents, args.document_words);
    let used = used_words(&terms, &picked, model.num_words());
    let place = |word: u32| used.binary_search(&word).expect("it is used") as u32;
    let size = CorpusSize {
        documents: answers.len(),
        tokens: answers.iter().map(|answer| answer.tokens).sum(),
        unknown: answers.iter().map(|answer| answer.unknown).sum(),
    };
    let shown = picked.len();
    let about =
        Origin { args, model: &model, corpus: &corpus, size: &size, similar: &similar, shown }
            .sections();
    let contents = Contents {
        title: file_name(&args.path),
        words: used.iter().map(|&word| name(model.vocabulary(), word)).collect(),
        frequency_codes: encode(used.iter().map(|&word| terms.frequencies[word as usize])),
        topics: topics(&terms, &chosen, &similar, &place)
            .zip(topic_names)
            .zip(&coherence.topics)
            .map(|((topic, name), &coherence)| Topic { name, coherence, ..topic })
            .collect(),
        documents: picked.iter().map(|picked| source.describe(picked, &place)).collect(),
        counts: terms.scale,
        time: corpus.dates().and_then(|dates| over_time(dates, &answers, model.num_topics())),
        corpus: size,
        stress: similar.stress,
        coherence: coherence.name,
        curves,
        about,
    };
    output.fill(|out| html::write(&contents, out))?;
    note(&format!(
        "{}: {} topics, {} words, {shown} documents",
        args.out.display(),
        contents.topics.len(),
        contents.words.len()
    ));
    Ok(())
}

fn titles(args: &Args, corpus: &Corpus) -> Result<Option<Vocabulary>, ReportError> {
    let Some(path) = &args.titles else { return Ok(names(corpus)) };
    let read = || {
        let file =
            File::open(path).map_err(|source| ReadError::Io { path: path.clone(), source })?;
        let titles = read_vocabulary(file, path)?;
        let (found, expected) = (titles.len() as u64, corpus.num_documents() as u64);
        if found == expected {
            Ok(titles)
        } else {
            Err(ReadError::Length { path: path.clone(), what: "titles", found, expected })
        }
    };
    read().map(Some).map_err(ReportError::Titles)
}

/// The name of each topic, if it has one.
fn topic_names(args: &Args, model: &TopicModel) -> Result<Vec<Option<String>>, ReportError> {
    let Some(path) = &args.topic_names else { return Ok(vec![None; model.num_topics()]) };
    let text = fs::read_to_string(path)
        .map_err(|source| ReportError::TopicNames(ReadError::Io { path: path.clone(), source }))?;
    let names: Vec<Option<String>> = text
        .lines()
        .map(|name| Some(name.trim().to_owned()).filter(|name| !name.is_empty()))
        .collect();
    let (found, expected) = (names.len() as u64, model.num_topics() as u64);
    if found != expected {
        let (path, what) = (path.clone(), "topic names");
        return Err(ReportError::TopicNames(ReadError::Length { path, what, found, expected }));
    }
    Ok(names)
}

/// Names of the documents, if they have names.
fn names(corpus: &Corpus) -> Option<Vocabulary> {
    let mut names = Vocabulary::new();
    for d in 0..corpus.num_documents() {
        // Names beyond 4 GiB are more than a page could show.
        names.push(corpus.document_name(d)?).ok()?;
    }
    Some(names)
}

fn tokens_of_topics(answers: &[Answer], topics: usize) -> Vec<f64> {
    let mut tokens = vec![0.0; topics];
    for &(topic, count) in answers.iter().flat_map(|answer| &answer.counts) {
        tokens[topic as usize] += count;
    }
    tokens
}

/// Words in the page, ascending.
fn used_words(terms: &Terms, picked: &[Picked], words: usize) -> Vec<u32> {
    let mut used = vec![false; words];
    let of_terms = terms.candidates.iter().flatten().map(|&(word, _)| word);
    for word in of_terms.chain(picked.iter().flat_map(Picked::words)) {
        used[word as usize] = true;
    }
    (0..words as u32).filter(|&word| used[word as usize]).collect()
}

/// A word, or its number without a vocabulary.
fn name(vocabulary: Option<&Vocabulary>, word: u32) -> String {
    vocabulary.map_or_else(|| format!("#{word}"), |names| names.word(word).to_owned())
}

fn topics(
    terms: &Terms,
    chosen: &Chosen,
    similar: &Similar,
    place: &impl Fn(u32) -> u32,
) -> impl Iterator<Item = Topic> {
    let topic = move |k: usize| {
        let candidates = &terms.candidates[k];
        let words = gaps(candidates.iter().map(|&(word, _)| place(word)));
        let counts = candidates.iter().map(|&(_, count)| u64::from(count));
        let documents = chosen.of_topics[k].iter();
        Topic {
            name: None,
            coherence: None,
            total: terms.totals[k],
            place: similar.points[k].map(|x| (x * 1000.0).round() as i32),
            word_codes: encode(words.zip(counts).flat_map(|(gap, count)| [gap, count])),
            document_codes: encode(
                documents.flat_map(|&(place, share)| [place as u64, thousandths(share)]),
            ),
            near: similar.near[k]
                .iter()
                .map(|&(other, far)| (other, thousandths(far) as u32))
                .collect(),
        }
    };
    (0..similar.points.len()).map(topic)
}
