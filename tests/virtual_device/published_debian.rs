//! Artifacts in Debian's docker-registry, which runs on this machine.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kforge::base::testing::skipped;

use crate::lab::Lab;
use crate::packaged::FOLDER;
use crate::published::{killed, kills, tree, world};

/// Debian's docker-registry on a port of this machine, with its files in a folder.
struct Debian(Child, String);

impl Drop for Debian {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// With `login`, the registry demands the name `me` and the password `s3cret`.
fn debian(folder: &Path, login: bool) -> Option<Debian> {
    let there = Command::new("docker-registry").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if there.is_err() {
        skipped("there is no docker-registry");
        return None;
    }
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = format!(
        "version: 0.1\nlog: {{ level: error }}\nstorage: {{ filesystem: {{ rootdirectory: {} }} }}\nhttp: {{ addr: \"{address}\" }}\n",
        folder.join("data").display()
    );
    // By bcrypt, as `htpasswd -B` writes it.
    fs::write(folder.join("htpasswd"), "me:$2b$04$I5TLyM769mT0ZYzUGCin9evkxF5afmP23BJ3pSN7ETFgZRr4hPh5O\n").unwrap();
    let auth = format!("auth: {{ htpasswd: {{ realm: test, path: {} }} }}\n", folder.join("htpasswd").display());
    fs::write(folder.join("config.yml"), if login { config + &auth } else { config }).unwrap();
    let log = fs::File::create(folder.join("log")).unwrap();
    let child = Command::new("docker-registry")
        .arg("serve")
        .arg(folder.join("config.yml"))
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap();
    let debian = Debian(child, address.to_string());
    let began = Instant::now();
    while std::net::TcpStream::connect(address).is_err() {
        let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
        assert!(began.elapsed() < Duration::from_secs(30), "docker-registry does not answer: {log}");
        std::thread::sleep(Duration::from_millis(50));
    }
    Some(debian)
}

#[test]
#[ignore = "second tier: needs Debian's docker-registry"]
fn an_artifact_goes_through_debians_registry_and_a_kill_leaves_nothing_half() {
    let folder = tempfile::tempdir().unwrap();
    let Some(registry) = debian(folder.path(), false) else { return };
    let world = world();
    let to = |name: &str| format!("oci://{}/{name}", registry.1);
    let output = |lab: &Lab, words: &[&str]| {
        let output = lab.project.command(words).output().unwrap();
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        (output.status.code(), said)
    };
    let publish = |name: &str| output(&world.lab, &["publish", &world.archive, &to(name)]);
    let install = |name: &str| output(&world.reader, &["install", &to(name), "--trust", &world.trusted]);
    let began = Instant::now();
    let (code, said) = publish("team/p");
    let took = began.elapsed();
    assert!(code == Some(0) && said.contains("Published p 0.1.0 as `0.1.0`"), "{said}");
    assert!(publish("team/p").1.contains("nothing changes"));
    let (code, said) = install("team/p");
    assert!(code == Some(0) && said.contains("signed by me@x"), "{said}");
    let whole = tree(&world.lab.project.root().join(FOLDER));
    assert_eq!(tree(&world.at("kernels/p")), whole);
    // The same from a lockfile, and by its digest.
    fs::remove_dir_all(world.at("kernels")).unwrap();
    let (code, said) = output(&world.reader, &["install", "--locked", "--trust", &world.trusted]);
    assert!(code == Some(0) && said.contains("Installed"), "{said}");
    // A push that is killed shows nothing or everything; repeated, it completes.
    let (mut running, kills) = (0, kills());
    for at in 0..kills {
        let name = format!("killed/p{at}");
        let child = world.lab.project.command(&["publish", &world.archive, &to(&name)]).spawn().unwrap();
        running += u32::from(killed(child, took * at / kills));
        fs::remove_dir_all(world.at("kernels")).unwrap();
        let (code, said) = install(&name);
        match code {
            Some(0) => assert_eq!(tree(&world.at("kernels/p")), whole),
            // The registry lists a tag a moment before it knows its manifest.
            _ => {
                let nothing = ["it has no tags", "has no tag `0.1.0`"].iter().any(|text| said.contains(text));
                assert!(nothing && !world.at("kernels").exists(), "{said}");
            }
        }
        assert_eq!(publish(&name).0, Some(0));
        assert_eq!(install(&name).0, Some(0));
    }
    assert!(running > 0, "no push was killed");
    // A pull that is killed.
    for at in 0..kills {
        let _ = fs::remove_dir_all(world.at("kernels"));
        let words = ["install", &to("team/p"), "--trust", &world.trusted];
        killed(world.reader.project.command(&words).spawn().unwrap(), took * at / kills);
        if world.at("kernels/p").exists() {
            assert_eq!(tree(&world.at("kernels/p")), whole);
        }
    }
    // What skopeo copies from a folder is what kforge publishes.
    if Command::new("skopeo").arg("--version").stdout(Stdio::null()).status().is_err() {
        return skipped("skopeo is not installed, so nothing is copied by another program");
    }
    let layout = world.registry();
    world.publish(&[&world.archive, &layout], 0);
    let from = format!("oci:{layout}:0.1.0");
    let copied = Command::new("skopeo")
        .args(["copy", "--dest-tls-verify=false", &from, &format!("docker://{}/copied/p:0.1.0", registry.1)])
        .output()
        .unwrap();
    assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
    let (code, said) = install("copied/p");
    assert!(code == Some(103) && said.contains("is not signed"), "skopeo copies no signature: {said}");
    let (code, said) = publish("copied/p");
    assert!(code == Some(0) && said.contains("its signature is added"), "{said}");
    assert_eq!(install("copied/p").0, Some(0));
}

#[test]
#[ignore = "second tier: needs Debian's docker-registry"]
fn debians_registry_gets_the_login_that_docker_keeps_and_nothing_else_does() {
    let folder = tempfile::tempdir().unwrap();
    let Some(registry) = debian(folder.path(), true) else { return };
    let world = world();
    let to = format!("oci://{}/team/p", registry.1);
    let output = |lab: &Lab, words: &[&str]| {
        let output = lab.project.command(words).output().unwrap();
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        assert!(!said.contains("s3cret") && !said.contains("bWU6"), "{said}");
        (output.status.code(), said)
    };
    let publish = ["publish", &world.archive, &to];
    let (code, said) = output(&world.lab, &publish);
    assert!(code == Some(101) && said.contains("there is no login for it"), "{said}");
    let config = world.lab.project.place().join("user/.docker/config.json");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    let keep = |auth: &str| {
        fs::write(&config, format!("{{\"auths\":{{\"{}\":{{\"auth\":\"{auth}\"}}}}}}", registry.1)).unwrap()
    };
    // `me:another`, then `me:s3cret`.
    keep("bWU6YW5vdGhlcg==");
    let (code, said) = output(&world.lab, &publish);
    assert!(code == Some(101) && said.contains("config.json` does not suffice"), "{said}");
    keep("bWU6czNjcmV0");
    let (code, said) = output(&world.lab, &publish);
    assert!(code == Some(0) && said.contains("Published p 0.1.0"), "{said}");
    let (code, said) = output(&world.reader, &["install", &to, "--trust", &world.trusted]);
    assert!(code == Some(0) && said.contains("Installed p 0.1.0"), "{said}");
    for (name, bytes) in tree(world.lab.project.place()) {
        let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        let is_program = name.ends_with("kforge");
        assert!(
            is_program || name.ends_with("config.json") || !holds("czNjcmV0") && !holds("s3cret"),
            "{}",
            name.display()
        );
    }
}
