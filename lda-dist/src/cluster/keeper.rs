//! Snapshots that are written beside sampling.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use crate::storage::{Storage, StorageError};

/// A way to a [`Storage`] that need not wait for it.
#[derive(Debug)]
pub struct Keeper {
    storage: Arc<dyn Storage>,
    writing: Writing,
    /// Objects that are being written.
    underway: usize,
    ended: Vec<Written>,
}

/// An object, and whether it is there now.
pub(super) type Written = (String, Result<(), StorageError>);

#[derive(Debug)]
enum Writing {
    /// At once, while who asks waits.
    Now,
    /// By a thread, which is begun with the first.
    Beside(Option<Thread>),
}

#[derive(Debug)]
struct Thread {
    orders: Sender<(String, Vec<u8>)>,
    written: Receiver<Written>,
    handle: JoinHandle<()>,
}

impl Keeper {
    /// Writes by a thread of its own; who drops it waits for what is underway.
    pub fn beside(storage: Arc<dyn Storage>) -> Self {
        Self { storage, writing: Writing::Beside(None), underway: 0, ended: Vec::new() }
    }

    /// Writes while its node waits: for simulations.
    pub fn now(storage: Arc<dyn Storage>) -> Self {
        Self { storage, writing: Writing::Now, underway: 0, ended: Vec::new() }
    }

    /// The storage.
    pub(super) fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    /// Begins to write.
    pub(super) fn write(&mut self, name: String, content: Vec<u8>) {
        self.underway += 1;
        let Writing::Beside(thread) = &mut self.writing else {
            let written = self.storage.write(&name, &content);
            self.ended.push((name, written));
            return;
        };
        let thread = thread.get_or_insert_with(|| Thread::start(Arc::clone(&self.storage)));
        // It takes orders as long as there is one who gives them.
        let _ = thread.orders.send((name, content));
    }

    /// What has been written since.
    pub(super) fn written(&mut self) -> Vec<Written> {
        let mut ended = std::mem::take(&mut self.ended);
        if let Writing::Beside(Some(thread)) = &self.writing {
            ended.extend(thread.written.try_iter());
        }
        self.underway -= ended.len();
        ended
    }

    /// Waits until all is written, and says what has become of it.
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

    /// Whether something is being written.
    pub(super) fn is_busy(&self) -> bool {
        self.underway > 0
    }
}

impl Thread {
    fn start(storage: Arc<dyn Storage>) -> Self {
        let (orders, taken) = mpsc::channel::<(String, Vec<u8>)>();
        let (done, written) = mpsc::channel();
        let handle = thread::spawn(move || {
            for (name, content) in taken {
                let ended = storage.write(&name, &content);
                // Who has gone does not want to know.
                let _ = done.send((name, ended));
            }
        });
        Self { orders, written, handle }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Writing::Beside(Some(Thread { orders, handle, .. })) =
            std::mem::replace(&mut self.writing, Writing::Now)
        {
            drop(orders);
            // A storage that has panicked has said so.
            let _ = handle.join();
        }
    }
}
