//! Hash functions of words, and rendezvous hashing of partitions.

/// Rendezvous hashing: the server with the lowest hash together with this partition; on a tie the
/// one with the lowest number. A new server takes partitions from all others and moves no other
/// partition.
pub(super) fn rendezvous(partition: u32, servers: u32) -> u32 {
    let hash = |server: u32| mix(u64::from(partition) << 32 | u64::from(server) ^ 0x5eed);
    (0..servers).min_by_key(|&server| (hash(server), server)).expect("there is a server")
}

/// Mixes the bits of a number: a bijection in which every output bit depends on every input bit
/// (Stafford 2011, "Better bit mixing", variant 13).
pub(super) const fn mix(mut bits: u64) -> u64 {
    bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
