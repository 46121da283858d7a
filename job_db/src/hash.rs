/// 64-bit FNV-1a. Numbers of locks are made with it, since it is the same in every version of the compiler and of the
/// program, which the standard library's hash does not promise.
pub fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
