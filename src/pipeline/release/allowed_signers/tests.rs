//! The format as OpenSSH defines it, and one clear error for each line that is not of it.

use super::*;
use crate::release::signature::{NAMESPACE, SigningKey};

const ED: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJEWjOJUMyUAYXWd9AuexVbsVpBZd4rZkXbLPPZFF7Ey";

fn one(line: &str) -> SignerLine {
    let mut found = AllowedSigners::parse(line).unwrap_or_else(|bad| panic!("{line}: {bad}")).lines;
    assert_eq!(found.len(), 1, "{line}");
    found.remove(0)
}

fn at(text: &str) -> Option<Timestamp> {
    Some(text.parse().unwrap())
}

#[test]
fn principals_options_keys_and_comments_are_read() {
    let plain = one(&format!("me@example.com {ED} a laptop"));
    assert_eq!((plain.principals.as_str(), plain.comment.as_str(), plain.number), ("me@example.com", "a laptop", 1));
    assert_eq!((&plain.namespaces, plain.valid_after, plain.valid_before), (&None, None, None));
    assert_eq!(plain.key.text(), ED);
    let full = one(&format!(
        "*@example.com,!bad@example.com\tNAMESPACES=\"git,kforge-*\",valid-after=\"20260102\",valid-before=\"202703040506Z\"  {ED}"
    ));
    assert_eq!(full.principals, "*@example.com,!bad@example.com");
    assert_eq!(full.namespaces.as_deref(), Some("git,kforge-*"));
    assert_eq!((full.valid_after, full.valid_before), (at("2026-01-02T00:00:00Z"), at("2027-03-04T05:06:00Z")));
    let seconds = one(&format!("a valid-before=\"20270304050607\" {ED}"));
    assert_eq!(seconds.valid_before, at("2027-03-04T05:06:07Z"));
    let quoted = one(&format!("\"Jane Doe\" namespaces=\"a \\\"b\\\" c\" {ED}"));
    assert_eq!((quoted.principals.as_str(), quoted.namespaces.as_deref()), ("Jane Doe", Some("a \"b\" c")));
    let file = format!("# keys\n\n   \na {ED}\n  # b {ED}\n\tc {ED}\r\n");
    let numbers: Vec<usize> = AllowedSigners::parse(&file).unwrap().lines.iter().map(|line| line.number).collect();
    assert_eq!(numbers, [4, 6]);
}

#[test]
fn a_bad_line_is_one_error_that_names_it() {
    for (line, says) in [
        (format!("a cert-authority {ED}"), "`cert-authority` is not supported"),
        (format!("a namespaces=\"x\",CERT-authority {ED}"), "`cert-authority` is not supported"),
        (format!("a valid-befor=\"20260101\" {ED}"), "unknown option `valid-befor`"),
        (format!("a namespaces=kforge-evidence {ED}"), "the value of `namespaces` is not in quotes"),
        (format!("a namespaces {ED}"), "the value of `namespaces` is not in quotes"),
        (format!("a namespaces=\"\" {ED}"), "`namespaces` is empty"),
        (format!("a namespaces=\"x\",namespaces=\"y\" {ED}"), "`namespaces` is given twice"),
        (format!("a namespaces=\"x\"y {ED}"), "unknown option `y`"),
        (format!("a valid-after=\"2026-01-01\" {ED}"), "is not a time"),
        (format!("a valid-after=\"20261301\" {ED}"), "is not a time"),
        (format!("a valid-after=\"2026010125\" {ED}"), "is not a time"),
        (format!("a valid-after=\"20270101\",valid-before=\"20260101\" {ED}"), "`valid-after` is not before"),
        (format!("a namespaces=\"x {ED}"), "a quote is not closed"),
        (format!("\"a {ED}"), "a quote is not closed"),
        (format!("!a {ED}"), "it names no principal"),
        (format!("\"\" {ED}"), "it names no principal"),
        ("a".into(), "it names no key"),
        ("a namespaces=\"x\"".into(), "it names no key"),
        ("a ssh-ed25519".into(), "not a public key"),
        ("a ssh-ed25519 AAAA".into(), "not a public key"),
        ("a namespaces=\"x\" ssh-ed25519 !!!".into(), "not a public key"),
        (ED.into(), "unknown option"),
    ] {
        let bad = AllowedSigners::parse(&format!("# first\n{line}\n")).expect_err(&line).to_string();
        assert!(bad.starts_with("line 2: ") && bad.contains(says), "{line}: {bad}");
        assert!(!bad.contains('\n'), "{bad}");
    }
}

#[test]
fn namespaces_are_patterns() {
    for (patterns, is_for) in [
        ("kforge-evidence", true),
        ("git,kforge-evidence", true),
        ("kforge-*", true),
        ("*", true),
        ("kforge-?vidence", true),
        ("*e*e*e*", true),
        ("git", false),
        ("kforge", false),
        ("kforge-evidence2", false),
        ("KFORGE-EVIDENCE", false),
        ("*,!kforge-evidence", false),
        ("!kforge-*,*", false),
        ("!git", false),
    ] {
        let line = one(&format!("a namespaces=\"{patterns}\" {ED}"));
        assert_eq!(line.is_for(NAMESPACE), is_for, "{patterns}");
    }
    assert!(one(&format!("a {ED}")).is_for(NAMESPACE), "without the option, every namespace");
    // A pattern with many stars takes no longer than others.
    let many = format!("a namespaces=\"{}x\" {ED}", "*e".repeat(2000));
    assert!(!one(&many).is_for(NAMESPACE));
}

#[test]
fn a_new_line_is_read_again() {
    let key = SigningKey::generate().unwrap().public();
    for principals in ["ci@example.com", "Jane Doe"] {
        let line = SignerLine { number: 1, ..SignerLine::new(Purpose::Evidence, principals, key.clone(), "of a test") };
        assert_eq!(one(&line.text()), line);
        assert!(line.is_for(NAMESPACE) && !line.is_for("git"));
    }
}
