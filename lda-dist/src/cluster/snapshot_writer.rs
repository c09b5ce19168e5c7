//! Writing and removal of snapshots in the background.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use crate::storage::{Storage, StorageError};

/// Writes to a [`Storage`] in the background.
#[derive(Debug)]
pub struct SnapshotWriter {
    storage: Arc<dyn Storage>,
    writing: Writing,
    /// Number of objects that are being written.
    underway: usize,
    ended: Vec<Written>,
    /// Errors of removals.
    left_over: Vec<StorageError>,
}

/// Name of an object, and the result of writing it.
pub(super) type Written = (String, Result<(), StorageError>);

#[derive(Debug)]
enum Writing {
    /// Writes while the caller waits.
    Now,
    /// Writes on a thread, which starts with the first object.
    Beside(Option<Thread>),
}

#[derive(Debug)]
struct Thread {
    orders: Sender<Order>,
    written: Receiver<Written>,
    left_over: Receiver<StorageError>,
    handle: JoinHandle<()>,
}

#[derive(Debug)]
enum Order {
    Write(String, Vec<u8>),
    Remove(String),
}

impl SnapshotWriter {
    /// Writes on a thread. Dropping the writer waits for writes in progress.
    pub fn beside(storage: Arc<dyn Storage>) -> Self {
        Self::new(storage, Writing::Beside(None))
    }

    /// Writes while the node waits, for simulations.
    pub fn now(storage: Arc<dyn Storage>) -> Self {
        Self::new(storage, Writing::Now)
    }

    fn new(storage: Arc<dyn Storage>, writing: Writing) -> Self {
        Self { storage, writing, underway: 0, ended: Vec::new(), left_over: Vec::new() }
    }

    /// The storage.
    pub(super) fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    /// Starts to write an object.
    pub(super) fn write(&mut self, name: String, content: Vec<u8>) {
        self.underway += 1;
        if matches!(self.writing, Writing::Now) {
            let written = self.storage.write(&name, &content);
            self.ended.push((name, written));
        } else {
            self.order(Order::Write(name, content));
        }
    }

    /// Starts to remove an object.
    pub(super) fn remove(&mut self, name: String) {
        if matches!(self.writing, Writing::Now) {
            self.left_over.extend(self.storage.remove(&name).err());
        } else {
            self.order(Order::Remove(name));
        }
    }

    fn order(&mut self, order: Order) {
        let Writing::Beside(thread) = &mut self.writing else { return };
        let thread = thread.get_or_insert_with(|| Thread::start(Arc::clone(&self.storage)));
        // The thread receives until the sender is dropped.
        let _ = thread.orders.send(order);
    }

    /// Takes the errors of removals.
    pub(super) fn left_over(&mut self) -> Vec<StorageError> {
        let mut errors = std::mem::take(&mut self.left_over);
        if let Writing::Beside(Some(thread)) = &self.writing {
            errors.extend(thread.left_over.try_iter());
        }
        errors
    }

    /// Takes the results of finished writes.
    pub(super) fn written(&mut self) -> Vec<Written> {
        let mut ended = std::mem::take(&mut self.ended);
        if let Writing::Beside(Some(thread)) = &self.writing {
            ended.extend(thread.written.try_iter());
        }
        self.underway -= ended.len();
        ended
    }

    /// Waits until all objects are written, and takes the results.
    pub(super) fn wait(&mut self) -> Vec<Written> {
        let mut ended = self.written();
        if let Writing::Beside(Some(thread)) = &self.writing {
            // A thread that has ended writes nothing more.
            let more: Vec<Written> =
                std::iter::from_fn(|| thread.written.recv().ok()).take(self.underway).collect();
            ended.extend(more);
        }
        self.underway = 0;
        ended
    }

    /// Returns whether an object is being written.
    pub(super) fn is_busy(&self) -> bool {
        self.underway > 0
    }
}

impl Thread {
    fn start(storage: Arc<dyn Storage>) -> Self {
        let (orders, taken) = mpsc::channel();
        let (done, written) = mpsc::channel();
        let (failed, left_over) = mpsc::channel();
        let handle = thread::spawn(move || {
            // The receiver is gone if the writer was dropped; the result is not needed then.
            for order in taken {
                match order {
                    Order::Write(name, content) => {
                        let ended = storage.write(&name, &content);
                        let _ = done.send((name, ended));
                    }
                    Order::Remove(name) => {
                        if let Err(error) = storage.remove(&name) {
                            let _ = failed.send(error);
                        }
                    }
                }
            }
        });
        Self { orders, written, left_over, handle }
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        if let Writing::Beside(Some(Thread { orders, handle, .. })) =
            std::mem::replace(&mut self.writing, Writing::Now)
        {
            drop(orders);
            // A panic of the storage was already reported.
            let _ = handle.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Memory;

    #[test]
    fn objects_are_written_and_taken_away_in_their_order() {
        for snapshot_writer in [SnapshotWriter::beside, SnapshotWriter::now] {
            let memory = Arc::new(Memory::default());
            let mut snapshot_writer = snapshot_writer(Arc::clone(&memory) as Arc<dyn Storage>);
            snapshot_writer.write("a".to_owned(), vec![1]);
            snapshot_writer.remove("a".to_owned());
            // Not a valid object name.
            snapshot_writer.remove("../a".to_owned());
            snapshot_writer.write("b".to_owned(), vec![2]);
            assert!(snapshot_writer.is_busy());
            let written: Vec<String> =
                snapshot_writer.wait().into_iter().map(|(name, _)| name).collect();
            assert_eq!(written, ["a", "b"]);
            assert!(!snapshot_writer.is_busy() && snapshot_writer.wait().is_empty());
            let left_over = snapshot_writer.left_over();
            assert!(matches!(&left_over[..], [StorageError::Name { .. }]), "{left_over:?}");
            assert!(snapshot_writer.left_over().is_empty());
            assert!(!memory.has("a").unwrap() && memory.has("b").unwrap());
            snapshot_writer.remove("b".to_owned());
            drop(snapshot_writer);
            assert!(!memory.has("b").unwrap());
        }
    }
}
