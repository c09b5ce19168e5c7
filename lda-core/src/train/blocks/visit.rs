//! A visit to all blocks: while one is worked on, the next is read, and the one before is written.
//!
//! At most three blocks are in memory beside those that are held. What is read and written depends on nothing
//! that other blocks do in the same visit, so threads change no bit.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::loaded::{LoadedBlock, Loader, TopicSource};
use crate::container::{FileError, Number};
use crate::corpus::blocks::Blocks;
use crate::train::registry::Width;

/// Blocks that stay in memory between visits; `None` for the others.
pub(super) type HeldBlocks<T> = Vec<Option<LoadedBlock<T>>>;

/// Parameters of a visit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit<'a> {
    /// Topics of the blocks that are read.
    pub from: TopicSource<'a>,
    /// The epoch after which blocks are written; `None` if they are only looked at.
    pub to: Option<u32>,
    /// Number of blocks, the first ones, that stay in memory.
    pub held: usize,
}

/// Calls `work` with each block in order.
pub(super) fn visit<B, T, E>(
    loader: &Loader<'_, B>,
    held: &mut HeldBlocks<T>,
    visit: Visit<'_>,
    mut work: impl FnMut(usize, &mut LoadedBlock<T>) -> Result<(), E>,
) -> Result<(), E>
where
    B: Blocks,
    T: Width + Number,
    E: From<FileError>,
{
    let missing: Vec<usize> = (0..held.len()).filter(|&block| held[block].is_none()).collect();
    thread::scope(|scope| {
        let (loaded, next) = sync_channel(0);
        let (worked, done) = sync_channel(0);
        scope.spawn(move || read_all(loader, missing, visit.from, &loaded));
        let writer = scope.spawn(move || write_all(loader, visit, done));
        let mut result = Ok(());
        for (block, held) in held.iter_mut().enumerate() {
            let of_block = match held.take() {
                Some(of_block) => Ok(of_block),
                // The reader ends early only after an error, which it sends.
                None => next.recv().expect("the reader sends every block, or an error"),
            };
            let worked_on = of_block.map_err(E::from).and_then(|mut of_block| {
                work(block, &mut of_block)?;
                Ok(of_block)
            });
            let sent = match worked_on {
                Ok(of_block) => worked.send((block, of_block)),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            };
            if sent.is_err() {
                // The writer ends early only after an error, which it returns.
                break;
            }
        }
        drop((worked, next));
        let written = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        result?;
        for (block, of_block) in written? {
            held[block] = Some(of_block);
        }
        Ok(())
    })
}

/// Reads blocks one after the other, until one cannot be read or all are wanted no more.
fn read_all<B: Blocks, T: Width + Number>(
    loader: &Loader<'_, B>,
    missing: Vec<usize>,
    from: TopicSource<'_>,
    to: &SyncSender<Result<LoadedBlock<T>, FileError>>,
) {
    for block in missing {
        let loaded = loader.load(block, from);
        let has_failed = loaded.is_err();
        if to.send(loaded).is_err() || has_failed {
            return;
        }
    }
}

/// Writes blocks one after the other; returns those that are held.
fn write_all<B: Blocks, T: Width + Number>(
    loader: &Loader<'_, B>,
    visit: Visit<'_>,
    done: Receiver<(usize, LoadedBlock<T>)>,
) -> Result<Vec<(usize, LoadedBlock<T>)>, FileError> {
    let mut held = Vec::new();
    for (block, loaded) in done {
        if let Some(epoch) = visit.to {
            loader.write((epoch, block), &loaded)?;
        }
        if block < visit.held {
            held.push((block, loaded));
        }
    }
    Ok(held)
}
