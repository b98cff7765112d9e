//! Descriptors from one process to another, through a socket that both have. Knows system calls; does not know what is behind the descriptors.
//!
//! Exported memory of a device cannot be opened by a path, as memory files can: only the descriptor itself leads to it.
#![expect(unsafe_code, reason = "the standard library does not pass descriptors")]

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

/// Room for the control message of one descriptor: a header of at most 32 bytes, and the descriptor.
const ROOM: usize = 64;

/// A control message whose memory is aligned as its header is.
#[repr(C, align(8))]
struct Control([u8; ROOM]);

/// Sends descriptors, one with each byte.
///
/// # Errors
/// The other end is closed, or the system fails.
pub(super) fn send(socket: &UnixStream, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    for descriptor in descriptors {
        let mut byte = [1_u8];
        let mut control = Control([0; ROOM]);
        let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
        // SAFETY: all fields of the structure may be zero. The header that the C library finds lies within the aligned room, which outlives the call, as do
        // the byte and the descriptor.
        let sent = unsafe {
            let mut message: libc::msghdr = zeroed();
            (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
            message.msg_control = control.0.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as _;
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
            libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(descriptor.as_raw_fd());
            libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL)
        };
        if sent != 1 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Takes as many descriptors. They are closed when a program is started, unless it is to inherit them.
///
/// # Errors
/// The other end is closed or sends something else, or the system fails.
pub(super) fn receive(socket: &UnixStream, count: usize) -> io::Result<Vec<OwnedFd>> {
    (0..count).map(|_| receive_one(socket)).collect()
}

fn receive_one(socket: &UnixStream) -> io::Result<OwnedFd> {
    let mut byte = [0_u8];
    let mut control = Control([0; ROOM]);
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    // SAFETY: as in `send`. The header is read only if the system has written one of this kind, which then holds one descriptor that nothing else owns.
    unsafe {
        let mut message: libc::msghdr = zeroed();
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = ROOM as _;
        match libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) {
            1 => {}
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            _ => return Err(io::Error::last_os_error()),
        }
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        let is_right = !header.is_null()
            && (*header).cmsg_level == libc::SOL_SOCKET
            && (*header).cmsg_type == libc::SCM_RIGHTS
            && (*header).cmsg_len as usize == libc::CMSG_LEN(size_of::<RawFd>() as u32) as usize;
        if !is_right {
            return Err(io::Error::other("a message without a descriptor"));
        }
        Ok(OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned()))
    }
}

/// The socket that this process inherited under that number.
pub(super) fn inherited(number: RawFd) -> UnixStream {
    // SAFETY: the worker names a descriptor that this process inherited and that nothing else here uses.
    unsafe { UnixStream::from_raw_fd(number) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    #[test]
    fn descriptors_lead_to_the_same_files_in_the_same_order() {
        let (one, other) = UnixStream::pair().unwrap();
        let files = [b"a", b"b"].map(|text| {
            let file = tempfile::tempfile().unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, text, 0).unwrap();
            file
        });
        send(&one, &files.each_ref().map(AsFd::as_fd)).unwrap();
        let got = receive(&other, 2).unwrap().into_iter().map(|fd| {
            let mut text = String::new();
            File::from(fd).read_to_string(&mut text).unwrap();
            text
        });
        assert_eq!(got.collect::<Vec<_>>(), ["a", "b"]);
        drop(one);
        assert!(receive(&other, 1).is_err());
    }

    #[test]
    fn a_byte_without_a_descriptor_is_an_error() {
        let (one, other) = UnixStream::pair().unwrap();
        (&one).write_all(b"x").unwrap();
        assert!(receive(&other, 1).is_err());
    }
}
