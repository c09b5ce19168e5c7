//! Counts by client address, with a limit.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts of requests in flight, or of connections, by client address.
#[derive(Debug)]
pub struct Clients {
    /// Addresses that hold nothing have no entry.
    held: Mutex<HashMap<IpAddr, usize>>,
    limit: usize,
}

impl Clients {
    /// Allows at most `limit` per client.
    pub fn new(limit: usize) -> Self {
        Self { held: Mutex::default(), limit }
    }

    /// The maximum per client.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Counts one more until the returned value is dropped; `None` if the client is at its limit.
    pub fn admit(self: &Arc<Self>, client: IpAddr) -> Option<ClientSlot> {
        let client = network(client);
        let mut held = self.lock();
        let count = held.entry(client).or_default();
        if *count >= self.limit {
            return None;
        }
        *count += 1;
        Some(ClientSlot { clients: Arc::clone(self), client })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The address that counts: of IPv6, the network of 64 bits, because one client has all of it.
fn network(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            IpAddr::V6((address.to_bits() >> 64 << 64).into())
        }
        address => address,
    }
}

/// Counts against the limit of a client until it is dropped.
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
        let clients = Arc::new(Clients::new(2));
        let [one, other] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        let first = clients.admit(one).unwrap();
        let second = clients.admit(one).unwrap();
        assert!(clients.admit(one).is_none());
        let third = clients.admit(other).unwrap();
        drop(first);
        let fourth = clients.admit(one).unwrap();
        drop((second, third, fourth));
        assert!(clients.lock().is_empty());
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let address = |text: &str| network(text.parse().unwrap());
        assert_eq!(address("2001:db8::1"), address("2001:db8::ffff:2"));
        assert_ne!(address("2001:db8::1"), address("2001:db8:0:1::1"));
        assert_eq!(address("::ffff:10.0.0.1"), address("10.0.0.1"));
        assert_ne!(address("::1"), address("::2"));
    }
}
