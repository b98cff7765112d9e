//! Turns off address randomisation for what this process becomes. Knows the system's call; does not start anything.
//!
//! A compiler that orders things by their addresses makes the same machine code again only if its memory is laid out alike. A compiler is not attacked through
//! its addresses: what it can do is limited by its confinement.
#![expect(unsafe_code, reason = "the call has no safe wrapper")]

/// Turns address randomisation off for the next program that this process becomes, and for all that it starts. Returns whether that changed anything: not if it
/// is off already, or if the system does not permit it.
pub fn fix_addresses() -> bool {
    // SAFETY: the call takes no pointers. This value only asks.
    let now = unsafe { libc::personality(0xffff_ffff) };
    if now == -1 || now & libc::ADDR_NO_RANDOMIZE != 0 {
        return false;
    }
    let fixed = libc::c_ulong::from((now | libc::ADDR_NO_RANDOMIZE).unsigned_abs());
    // SAFETY: as above.
    unsafe { libc::personality(fixed) != -1 }
}
