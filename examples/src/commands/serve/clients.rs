//! Limit of the requests in flight per client.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::commands::serve::problem::Problem;

/// Requests in flight by client address.
#[derive(Debug)]
pub struct Clients {
    /// Addresses with no request in flight have no entry.
    under_way: Mutex<HashMap<IpAddr, usize>>,
    limit: Option<usize>,
}

impl Clients {
    /// Allows at most `limit` requests per client; `None` for no limit.
    pub fn new(limit: Option<usize>) -> Self {
        Self { under_way: Mutex::default(), limit }
    }

    /// Admits a request, which counts until the returned value is dropped.
    ///
    /// # Errors
    /// [`Problem::Client`], if the client is at its limit.
    pub fn admit(self: &Arc<Self>, client: IpAddr) -> Result<Option<ClientSlot>, Problem> {
        let Some(limit) = self.limit else { return Ok(None) };
        let mut under_way = self.lock();
        let count = under_way.entry(client).or_default();
        if *count >= limit {
            return Err(Problem::Client { limit });
        }
        *count += 1;
        Ok(Some(ClientSlot { clients: Arc::clone(self), client }))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that counts against the limit of its client until it is dropped.
#[derive(Debug)]
pub struct ClientSlot {
    clients: Arc<Clients>,
    client: IpAddr,
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        if let Entry::Occupied(mut count) = self.clients.lock().entry(self.client) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_its_own_limit() {
        let clients = Arc::new(Clients::new(Some(2)));
        let [one, other] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        let first = clients.admit(one).unwrap();
        let second = clients.admit(one).unwrap();
        assert!(matches!(clients.admit(one), Err(Problem::Client { limit: 2 })));
        let third = clients.admit(other).unwrap();
        drop(first);
        let fourth = clients.admit(one).unwrap();
        drop((second, third, fourth));
        assert!(clients.lock().is_empty());
    }
}
