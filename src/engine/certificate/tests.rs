//! What makes a certificate void, and that a written certificate reads back unchanged.

use std::time::Duration;

use super::*;
use crate::Blobs;
use crate::blobs::Store;

/// A folder with a home and files, all of them old.
struct World {
    dir: tempfile::TempDir,
    home: Home,
    kept: Digest,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        let kept = Store::new(&home).put(b"kept").unwrap();
        std::fs::create_dir_all(dir.path().join("src/sub")).unwrap();
        for name in ["src/a.cu", "src/b.h", "report"] {
            std::fs::write(dir.path().join(name), name).unwrap();
        }
        // Waits until the clock of the file system has moved on.
        let (probe, began) = (dir.path().join("probe"), SystemTime::now());
        while {
            std::fs::write(&probe, "x").unwrap();
            probe.metadata().unwrap().modified().unwrap().duration_since(began).map_or(0, |d| d.as_millis()) < 40
        } {}
        World { dir, home, kept }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn question() -> Digest {
        Digest::of(b"question")
    }

    /// A certificate for a command that began `after` from now.
    fn made(&self, after: Duration) -> Option<Certificate> {
        let mut maker = Maker::new(World::question(), SystemTime::now() + after);
        let mut witness = Witness::default();
        for name in ["src/a.cu", "src/b.h", "sub/b.h"] {
            witness.is_file(&self.at(name));
        }
        witness.listed(&self.at("src"));
        maker.saw(witness);
        maker.wrote(&self.at("report"));
        maker.needs([self.kept]);
        maker.unknown(Digest::of(b"key"));
        maker.done(&self.home, b"answer".to_vec())
    }

    fn later(&self) -> Certificate {
        self.made(Duration::from_secs(10)).unwrap()
    }
}

#[test]
fn it_reads_back_as_it_was_written_and_a_damaged_one_not_at_all() {
    let world = World::new();
    let certificate = world.later();
    let place = world.at("certificate");
    certificate.write(&place, None).unwrap();
    assert_eq!(Certificate::read(&place, None), Some(certificate.clone()));
    let bytes = certificate.encode(None);
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 1;
        assert_eq!(Certificate::decode(&bad, None), None, "byte {at}");
        assert_eq!(Certificate::decode(&bytes[..at], None), None, "cut at {at}");
    }
}

#[test]
fn one_that_is_keyed_is_read_with_its_key_only() {
    let world = World::new();
    let certificate = world.later();
    let place = world.at("certificate");
    let [own, other] = [1, 2].map(|n| MachineKey::of_bytes(&[n; 32]));
    certificate.write(&place, Some(&own)).unwrap();
    assert_eq!(Certificate::read(&place, Some(&own)), Some(certificate.clone()));
    assert_eq!(Certificate::read(&place, Some(&other)), None, "as another machine wrote it");
    assert_eq!(Certificate::read(&place, None), None);
    certificate.write(&place, None).unwrap();
    assert_eq!(Certificate::read(&place, Some(&own)), None, "as a build that takes claims wrote it");
}

/// A change of a world: a description, and the code that makes the change.
type Change = (&'static str, fn(&World));

#[test]
fn it_holds_until_anything_it_names_changes() {
    let changes: [Change; 13] = [
        ("a file is written", |w| std::fs::write(w.at("src/a.cu"), "src/A.cu").unwrap()),
        ("a file is removed", |w| std::fs::remove_file(w.at("src/b.h")).unwrap()),
        ("a file is renamed over another", |w| std::fs::rename(w.at("src/b.h"), w.at("src/a.cu")).unwrap()),
        ("times are set back", |w| {
            let file = std::fs::File::options().write(true).open(w.at("src/a.cu")).unwrap();
            let then = file.metadata().unwrap().modified().unwrap();
            std::fs::write(w.at("src/a.cu"), "src/A.cu").unwrap();
            file.set_modified(then).unwrap();
        }),
        ("an entry comes", |w| std::fs::write(w.at("src/new.h"), "").unwrap()),
        ("an entry goes", |w| std::fs::remove_dir(w.at("src/sub")).unwrap()),
        ("something comes where nothing was", |w| {
            std::fs::create_dir(w.at("sub")).unwrap();
            std::fs::write(w.at("sub/b.h"), "").unwrap();
        }),
        ("a content is removed", |w| std::fs::remove_file(w.home.cas().join(shard(&w.kept))).unwrap()),
        ("a content is changed in place", |w| {
            use std::os::unix::fs::PermissionsExt;
            let place = w.home.cas().join(shard(&w.kept));
            std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o644)).unwrap();
            std::fs::write(place, "KEPT").unwrap();
        }),
        ("a content is truncated", |w| {
            let place = w.home.cas().join(shard(&w.kept));
            std::fs::remove_file(&place).unwrap();
            std::fs::write(place, "kep").unwrap();
        }),
        ("a result comes", |w| {
            let place = w.home.actions().join(shard(&Digest::of(b"key")));
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(place, "").unwrap();
        }),
        ("evidence comes", |w| std::fs::create_dir(w.home.evidence().join(Digest::of(b"key").hex())).unwrap()),
        ("the home goes", |w| std::fs::remove_dir_all(w.home.root()).unwrap()),
    ];
    for (what, change) in changes {
        let world = World::new();
        let certificate = world.later();
        assert!(certificate.holds(&World::question(), &world.home), "before {what}");
        change(&world);
        assert!(!certificate.holds(&World::question(), &world.home), "{what}");
    }
    let world = World::new();
    assert!(!world.later().holds(&Digest::of(b"another question"), &world.home));
    let certificate = world.later();
    std::fs::remove_file(world.at("report")).unwrap();
    assert!(!certificate.holds(&World::question(), &world.home), "the report is gone");
}

#[test]
fn none_is_made_where_something_may_have_changed_since_it_was_read() {
    let world = World::new();
    std::fs::write(world.at("src/a.cu"), "written just before").unwrap();
    assert_eq!(world.made(Duration::ZERO), None, "the files were written within the clock's granularity");
    assert!(world.made(Duration::from_secs(10)).is_some());
    std::fs::create_dir(world.at("sub")).unwrap();
    let mut maker = Maker::new(World::question(), SystemTime::now() + Duration::from_secs(10));
    let mut witness = Witness::default();
    witness.saw(&world.at("sub/b.h"), false);
    std::fs::write(world.at("sub/b.h"), "").unwrap();
    maker.saw(witness);
    assert_eq!(maker.done(&world.home, vec![]), None, "what was looked for in vain is there now");
}

#[test]
fn a_touched_file_voids_it_and_an_untouched_world_does_not() {
    let world = World::new();
    let certificate = world.later();
    for _ in 0..3 {
        assert!(certificate.holds(&World::question(), &world.home));
    }
    std::fs::File::options()
        .write(true)
        .open(world.at("src/b.h"))
        .unwrap()
        .set_modified(SystemTime::UNIX_EPOCH)
        .unwrap();
    assert!(!certificate.holds(&World::question(), &world.home));
}
