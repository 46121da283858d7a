//! Numbers for advisory locks. Who else uses them in the same database is not known, so that ours come from a hash of all that
//! makes two partitions the same one.

/// Workers of different builds must agree on it.
pub(crate) fn hash48<'a>(parts: impl IntoIterator<Item = &'a str>) -> u64 {
    // The byte between two parts occurs in no text.
    let hash = job_db::fnv1a(parts.into_iter().flat_map(|part| part.bytes().chain([0xff])));
    (hash ^ (hash >> 48)) & 0xffff_ffff_ffff
}

#[cfg(test)]
mod tests {
    use super::hash48;

    #[test]
    fn the_hash_has_48_bits_and_tells_where_a_part_ends() {
        assert!(hash48(["accounts", "64"]) < 1 << 48);
        assert_ne!(hash48(["ab", "c"]), hash48(["a", "bc"]));
        // Never to change: workers of an old and a new build share locks.
        assert_eq!(hash48(["accounts"]), 0xc9c2_491a_b113);
    }
}
