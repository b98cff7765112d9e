//! Homes: created, shared, refused, and listed.

use super::*;

fn age(path: &Path, by: Duration) {
    let file = std::fs::File::open(path).unwrap();
    file.set_modified(SystemTime::now() - by).unwrap();
}

#[test]
fn an_error_says_where_it_is_and_what_to_do() {
    let full = io::Error::new(io::ErrorKind::StorageFull, "no space at path \"/home/tmp/.tmp-1\"");
    let full = named(full, Doing::Write, Path::new("/home/cas/x"));
    assert_eq!(full.to_string(), format!("cannot write `/home/cas/x`: no space; {}", Trouble::Full.help()));
    assert_eq!(trouble(&full), Some(Trouble::Full));
    let gone = |doing| named(io::ErrorKind::NotFound.into(), doing, Path::new("/home/tmp"));
    assert_eq!((trouble(&gone(Doing::WriteIn)), trouble(&gone(Doing::Read))), (Some(Trouble::Gone), None));
    assert_eq!(trouble(&io::ErrorKind::StorageFull.into()), None);
}

#[test]
fn makes_its_folders_and_tag_once() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("home");
    let home = Home::open(&root).unwrap();
    for folder in [
        home.cas(),
        home.actions(),
        home.evidence(),
        home.answers(),
        home.toolchains(),
        home.scratch(),
        home.locks(),
        home.tmp(),
    ] {
        assert!(folder.is_dir(), "{}", folder.display());
    }
    let tag = root.join("CACHEDIR.TAG");
    assert!(std::fs::read_to_string(&tag).unwrap().starts_with("Signature: 8a477f597d28d172789f06886806bc55\n"));
    age(&tag, Duration::from_secs(9));
    let before = tag.metadata().unwrap().modified().unwrap();
    Home::open(&root).unwrap();
    assert_eq!(tag.metadata().unwrap().modified().unwrap(), before);
}

#[test]
fn sweeps_what_dead_writers_left_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::open(dir.path()).unwrap();
    let hours = |n: u64| Duration::from_secs(3600 * n);
    let old = home.tmp().join(".tmp-old");
    let young = home.tmp().join(".tmp-young");
    let other = home.scratch().join("expected");
    for path in [&old, &young, &other] {
        std::fs::write(path, "x").unwrap();
    }
    age(&old, hours(2));
    age(&other, hours(2));
    // A folder in which a file was written recently is in use, whatever the age of the folder itself.
    let busy = home.toolchains().join(".tmp-busy");
    std::fs::create_dir(&busy).unwrap();
    std::fs::write(busy.join("part"), "x").unwrap();
    age(&busy, hours(2));
    let dead = home.toolchains().join(".tmp-dead");
    std::fs::create_dir(&dead).unwrap();
    std::fs::write(dead.join("part"), "x").unwrap();
    age(&dead.join("part"), hours(3));
    age(&dead, hours(2));
    let [killed, running] = ["step-killed", "step-running"].map(|name| home.steps().join(name));
    for (step, old) in [(&killed, 25), (&running, 23)] {
        std::fs::create_dir_all(step.join("in")).unwrap();
        std::fs::write(step.join("in/binary"), "x").unwrap();
        [step.join("in/binary"), step.join("in"), step.clone()].iter().for_each(|path| age(path, hours(old)));
    }
    Home::open(dir.path()).unwrap();
    assert!(!old.exists() && !dead.exists() && !killed.exists());
    assert!(young.exists() && other.exists() && busy.exists() && running.exists());
}

#[test]
fn journals_are_known_while_they_are_there() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::open(&dir.path().join("home")).unwrap();
    let journal = dir.path().join("w\u{e9}/journal");
    std::fs::create_dir_all(journal.parent().unwrap()).unwrap();
    std::fs::write(&journal, "").unwrap();
    home.register(&journal).unwrap();
    home.register(&journal).unwrap();
    home.register(&dir.path().join("never")).unwrap();
    assert_eq!(home.journals().unwrap(), std::slice::from_ref(&journal));
    std::fs::remove_file(&journal).unwrap();
    assert!(home.journals().unwrap().is_empty());
    assert_eq!(files_in(&home.root.join("workspaces")).unwrap().len(), 0);
}

#[test]
fn a_home_that_cannot_be_made_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = Home::open(&file).unwrap_err().to_string();
    assert!(error.contains(&*file.join("cas").to_string_lossy()), "{error}");
}

#[test]
fn names_of_contents_are_read_and_no_others() {
    let digest = Digest::of(b"x");
    assert_eq!(hash_of(OsStr::new(&digest.hex())), Some(*digest.hash()));
    let hex = digest.hex();
    for other in ["", "README", &hex[1..], &format!("{hex}0"), &hex.to_uppercase(), &format!("{}g", &hex[1..])] {
        assert_eq!(hash_of(OsStr::new(other)), None, "{other}");
    }
}

#[test]
fn device_names_cannot_leave_the_folder_of_locks() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::open(dir.path()).unwrap();
    let _lock = home.lock_device("../../x/GPU-1", Mode::Exclusive, Wait::No).unwrap();
    assert!(home.locks().join("devices/______x_GPU-1").exists());
}
