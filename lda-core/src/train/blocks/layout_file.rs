//! Files of laid-out blocks: the order of a block's tokens, which is found once per run and sampler.
//!
//! Sections of token set s: `documents-s`, `lengths-s`, `starts-s`, `visit-starts-s`, `slot-starts-s`, `rows-s` and
//! `ends-s` are the arrays of the [`TokenLayout`]; `partner-s` has 2 bytes per token where document ranges have at
//! most 65,536 documents and words, else 4; `inverse-s` is in its place if the sampler walks documents.

use std::fs::File;
use std::io::{BufReader, Seek, Write};
use std::path::Path;

use super::store::LAYOUT;
use crate::container::pairs::{self, ABOUT, Pairs};
use crate::container::{FileError, Kind, Reader, Source, Writer, replace};
use crate::corpus::blocks::Part;
use crate::layout::{InverseIndex, LayoutParts, TokenLayout, WordRanges};
use crate::sampler::Requires;
use crate::train::options::Resolved;
use crate::train::run_record::optional;

/// A laid-out token set.
pub(super) type LaidOut = (TokenLayout, Option<InverseIndex>);

/// A block and the rules by which it is laid out.
#[derive(Debug)]
pub(super) struct LayoutKey<'a> {
    pub block: usize,
    pub part: &'a Part,
    pub options: &'a Resolved,
    /// Requirements of the sampler of each token set.
    pub requires: &'a [Requires],
}

impl LayoutKey<'_> {
    /// The rules in words: two keys with the same words have the same layout.
    fn rules(&self) -> String {
        let sets = self.requires.iter().map(|needs| (needs.token_order, needs.proposals));
        // Documents go to the two sets of a hybrid by their lengths.
        let divided = (self.requires.len() > 1).then_some(self.options.short_length);
        format!("{} {divided:?} {:?}", self.options.ranges, sets.collect::<Vec<_>>())
    }
}

/// Writes the layouts of a block's token sets.
pub(super) fn write<'a>(
    path: &Path,
    key: &LayoutKey<'_>,
    sets: impl ExactSizeIterator<Item = (&'a TokenLayout, Option<&'a InverseIndex>)>,
) -> Result<(), FileError> {
    replace(path, |file| Ok(write_sets(file, key, sets)?))
}

fn write_sets<'a, W: Write + Seek>(
    out: W,
    key: &LayoutKey<'_>,
    sets: impl ExactSizeIterator<Item = (&'a TokenLayout, Option<&'a InverseIndex>)>,
) -> std::io::Result<()> {
    let mut file = Writer::new(out, Kind::Layout, 1 + 8 * sets.len())?;
    let about = [
        ("block", key.block.to_string()),
        ("documents", format!("{:016x}", key.part.fingerprint)),
        ("layout", LAYOUT.to_string()),
        ("rules", key.rules()),
    ];
    file.section(ABOUT, pairs::to_bytes(about.iter().map(|(name, value)| (*name, &**value))))?;
    for (number, (layout, inverse)) in sets.enumerate() {
        let parts = layout.parts();
        for (name, values) in [
            ("documents", parts.documents),
            ("lengths", parts.lengths),
            ("starts", parts.starts),
            ("rows", parts.rows),
            ("ends", parts.ends),
        ] {
            file.section(&format!("{name}-{number}"), values)?;
        }
        file.section(&format!("visit-starts-{number}"), parts.visit_starts)?;
        file.section(&format!("slot-starts-{number}"), parts.slot_starts)?;
        let partner = layout.partner();
        match inverse {
            Some(inverse) => {
                file.section(&format!("inverse-{number}"), inverse.slots().iter().copied())?;
            }
            None if partner.iter().all(|&partner| partner <= u32::from(u16::MAX)) => {
                let narrow = partner.iter().map(|&partner| partner as u16);
                file.section(&format!("partner-{number}"), narrow)?;
            }
            None => file.section(&format!("partner-{number}"), partner.iter().copied())?,
        }
    }
    file.finish()?.flush()
}

/// Reads the layouts of a block's token sets; `None` if there is no file, or it is of other rules, as those of the
/// warm-up.
pub(super) fn read(
    path: &Path,
    key: &LayoutKey<'_>,
    words: &WordRanges,
) -> Result<Option<Vec<LaidOut>>, FileError> {
    let read = || {
        let file = match File::open(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut file = Reader::open(BufReader::new(file), Kind::Layout)?;
        let about = Pairs::parse(&file.numbers::<u8>(ABOUT)?)?;
        let hash = about.required("documents", |hex| u64::from_str_radix(hex, 16).ok())?;
        if about.read::<usize>("block")? != key.block || hash != key.part.fingerprint {
            let why = "it is of another block: resume with the documents of the run";
            return Err(FileError::malformed(ABOUT, why));
        }
        let rules: String = about.read("rules")?;
        if about.read::<u32>("layout")? != LAYOUT || rules != key.rules() {
            return Ok(None);
        }
        let sets = key.requires.iter().enumerate();
        let sets = sets.map(|(number, needs)| read_set(&mut file, number, key, *needs, words));
        sets.collect::<Result<Vec<LaidOut>, FileError>>().map(Some)
    };
    read().map_err(|error: FileError| error.at(path))
}

fn read_set<R: std::io::Read + Seek>(
    file: &mut Reader<R>,
    number: usize,
    key: &LayoutKey<'_>,
    needs: Requires,
    words: &WordRanges,
) -> Result<LaidOut, FileError> {
    let name = |of: &str| format!("{of}-{number}");
    let partner = name("partner");
    let parts = LayoutParts {
        documents: file.numbers(&name("documents"))?,
        lengths: file.numbers(&name("lengths"))?,
        starts: file.numbers(&name("starts"))?,
        visit_starts: file.numbers(&name("visit-starts"))?,
        slot_starts: file.numbers(&name("slot-starts"))?,
        rows: file.numbers(&name("rows"))?,
        ends: file.numbers(&name("ends"))?,
        partner: match file.has_of::<u16>(&partner) {
            true => file.numbers::<u16>(&partner)?.into_iter().map(u32::from).collect(),
            false => optional(file, &partner)?,
        },
    };
    let has_partners = !parts.partner.is_empty();
    let wrong =
        || FileError::malformed(name("starts"), "the arrays of the layout contradict each other");
    let documents = key.part.num_documents();
    let layout = TokenLayout::from_parts(parts, needs.token_order, words, documents);
    let layout = layout.ok_or_else(wrong)?;
    if !needs.proposals {
        let is_whole = has_partners || layout.num_tokens() == 0;
        return if is_whole { Ok((layout, None)) } else { Err(wrong()) };
    }
    let slots = file.numbers(&name("inverse"))?;
    let inverse = InverseIndex::from_slots(&layout, slots).ok_or_else(wrong)?;
    Ok((layout, Some(inverse)))
}
