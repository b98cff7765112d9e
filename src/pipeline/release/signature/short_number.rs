//! Keys of ECDSA whose private number begins with zero bytes, which are 1 in 256. OpenSSH leaves these bytes out, and `ssh_key` expects all 32 of them.
//! Knows the file format of OpenSSH (PROTOCOL.key); decides nothing.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
const END: &str = "-----END OPENSSH PRIVATE KEY-----";
const MAGIC: &[u8] = b"openssh-key-v1\0";
/// The kind of key, and the length of its number in bytes.
const KIND: &[u8] = b"ecdsa-sha2-nistp256";
const LENGTH: usize = 32;
/// The private part of a key without a passphrase is padded to a multiple of this, with the bytes 1, 2, 3.
const BLOCK: usize = 8;
/// The length of a line of the text.
const LINE: usize = 70;

/// The same key with all bytes of its number. None if the text is not such a key without a passphrase.
pub(super) fn padded(text: &str) -> Option<String> {
    let body = text.trim().strip_prefix(BEGIN)?.strip_suffix(END)?;
    let bytes = STANDARD.decode(body.split_whitespace().collect::<String>()).ok()?;
    let mut rest = bytes.strip_prefix(MAGIC)?;
    let (cipher, kdf, options) = (string(&mut rest)?, string(&mut rest)?, string(&mut rest)?);
    let number_of_keys = take(&mut rest, 4)?;
    let (public, private) = (string(&mut rest)?, string(&mut rest)?);
    if cipher != b"none" || number_of_keys != 1u32.to_be_bytes() || !rest.is_empty() {
        return None;
    }
    let mut out = MAGIC.to_vec();
    [cipher, kdf, options].into_iter().for_each(|field| put(&mut out, field));
    out.extend(number_of_keys);
    put(&mut out, public);
    put(&mut out, &with_whole_number(private)?);
    let encoded = STANDARD.encode(out);
    let lines: Vec<&str> = encoded.as_bytes().chunks(LINE).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    Some(format!("{BEGIN}\n{}\n{END}\n", lines.join("\n")))
}

/// The private part of a key with all bytes of its number.
fn with_whole_number(mut private: &[u8]) -> Option<Vec<u8>> {
    let mut out = take(&mut private, 8)?.to_vec();
    let (kind, curve, point) = (string(&mut private)?, string(&mut private)?, string(&mut private)?);
    let (number, comment) = (string(&mut private)?, string(&mut private)?);
    if kind != KIND || number.len() >= LENGTH {
        return None;
    }
    [kind, curve, point].into_iter().for_each(|field| put(&mut out, field));
    put(&mut out, &[&vec![0; LENGTH - number.len()], number].concat());
    put(&mut out, comment);
    let missing = out.len().next_multiple_of(BLOCK) - out.len();
    out.extend((1..).take(missing));
    Some(out)
}

/// Takes so many bytes from the start.
fn take<'b>(bytes: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

/// Takes a field from the start: its length in four bytes, then its bytes.
fn string<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = u32::from_be_bytes(take(bytes, 4)?.try_into().ok()?);
    take(bytes, usize::try_from(length).ok()?)
}

fn put(out: &mut Vec<u8>, field: &[u8]) {
    out.extend(u32::try_from(field.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend(field);
}

#[cfg(test)]
mod tests {
    use super::super::{KeyError, KeyFile, PublicKey};
    use super::*;

    /// A key of `ssh-keygen -t ecdsa` whose number has 31 bytes.
    const SHORT: &str = "-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAaAAAABNlY2RzYS
1zaGEyLW5pc3RwMjU2AAAACG5pc3RwMjU2AAAAQQRtFK4cItUQoEKFoGsP1du59xW7kiV9
luylCq+yhdnWLVzj2aQsi5WR76AuZ9Sdj5bGq/8rUHqVAB0jPb2IStYpAAAAoGZe6qxmXu
qsAAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBG0Urhwi1RCgQoWg
aw/V27n3FbuSJX2W7KUKr7KF2dYtXOPZpCyLlZHvoC5n1J2Plsar/ytQepUAHSM9vYhK1i
kAAAAfJKiQ/nok9Gr/X/1wjLaokP2Mi6hlGH3jYAIFn7Ia+AAAAAVzaG9ydAECAwQ=
-----END OPENSSH PRIVATE KEY-----
";
    /// The same behind the passphrase `secret`.
    const ENCRYPTED: &str = "-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABCQWwFzR8
2iMLy9TMh6snT5AAAAEAAAAAEAAABoAAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlz
dHAyNTYAAABBBG0Urhwi1RCgQoWgaw/V27n3FbuSJX2W7KUKr7KF2dYtXOPZpCyLlZHvoC
5n1J2Plsar/ytQepUAHSM9vYhK1ikAAACgFXx5LPH8rk+bQe6nOJR5NR9r2e7qruWNHKdZ
FULHh4klhd3pLYas6ThdOiNv69HneDvXG0Ph8/rLQhiaUD/OrI3p9MN7JNbqi68RbgjBLS
u3k29K1wkEoJjsYyICZ56C5DNmsBNx5uJNmf1+ltnJ6EsV0QgsG6zJLcVCKp87EqT2eckf
YzR66CXDEoPvvb9NQHE1aJvZi6BXZngN5gIKbQ==
-----END OPENSSH PRIVATE KEY-----
";
    const PUBLIC: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBG0Urhwi1RCgQoWgaw/V27n3FbuSJX2W7KUKr7KF2dYtXOPZpCyLlZHvoC5n1J2Plsar/ytQepUAHSM9vYhK1ik= short";

    #[test]
    fn a_key_whose_number_begins_with_zeros_signs_and_others_are_left_alone() {
        assert!(ssh_key::PrivateKey::from_openssh(SHORT).is_err(), "`ssh_key` reads it, so this file is not needed");
        let KeyFile::Private(key) = KeyFile::parse(SHORT).unwrap() else { panic!("not a private key") };
        assert_eq!(key.public(), PublicKey::parse(PUBLIC).unwrap().0);
        let signature = key.sign("n", b"document").unwrap();
        assert!(signature.key == key.public() && signature.parsed.public_key() == &signature.key.data);
        // Behind a passphrase it is refused for its reason, and a wrong passphrase for its own.
        let KeyFile::Encrypted(key) = KeyFile::parse(ENCRYPTED).unwrap() else { panic!("not encrypted") };
        assert!(matches!(key.open("secret"), Err(KeyError::ShortNumber)));
        assert!(matches!(key.open("wrong"), Err(KeyError::Passphrase(_))));
        // What is whole, cut or something else is not changed.
        assert_eq!(padded(&padded(SHORT).unwrap()), None);
        for end in (0..SHORT.len()).step_by(7) {
            assert_eq!(padded(&SHORT[..end]), None, "{end}");
        }
        let cut: String =
            SHORT.lines().enumerate().filter(|(at, _)| *at != 3).map(|(_, line)| format!("{line}\n")).collect();
        assert!(matches!(KeyFile::parse(&cut), Err(KeyError::NotKey(_))));
    }
}
