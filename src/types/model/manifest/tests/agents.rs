//! Agents and rounds in manifests.

use super::{package, read, show};
use crate::model::TuneValue;
use crate::model::agent::{AgentAccess, Budget, Prices, Scope};

const OPERATOR: &str = "[package]\nname = \"p\"\n[operator.o]\ndims = [\"n\"]\ninputs.x = { dtype = \"f32\", shape = [\"n\"] }\noutputs.y = { dtype = \"f32\", shape = [\"n\"] }\nreference = { builtin = \"elementwise\", y = \"x\" }\nshapes.s = { n = 8 }\n";

fn with(rest: &str) -> String {
    format!("{OPERATOR}{rest}")
}

#[test]
fn agents_are_endpoints_or_programs_with_limits() {
    let package = package(&with(
        "[agents.far]\nhttp = \"https://host/v1\"\nmodel = \"m\"\nkey = \"THE_KEY\"\ntemperature = 0.2\nmax_tokens = 9\nper_minute = 6\nretries = 0\nparallel = 9\n\
         prices = { input = 3, output = 15.5 }\nbudget = { tokens = 100, money = 0.5 }\n[agents.near]\ncommand = [\"./a.py\", \"-x\"]\ntime_limit = 5\n",
    ));
    let [far, near] = &package.agents[..] else { panic!("{:?}", package.agents) };
    let AgentAccess::Http { url, model, key, temperature, max_tokens } = &far.reach else { panic!("{far:?}") };
    assert_eq!(
        (url.as_str(), model.as_str(), key.as_ref().map(|k| k.as_str())),
        ("https://host/v1", "m", Some("THE_KEY"))
    );
    assert_eq!(
        (*temperature, *max_tokens, far.per_minute, far.retries, far.time_limit_s),
        (Some(0.2), Some(9), Some(6), 0, 600)
    );
    assert_eq!(far.prices, Some(Prices { input: 3.0, output: 15.5 }));
    assert_eq!(far.budget, Budget { requests: None, tokens: Some(100), money: Some(0.5) });
    assert_eq!(near.reach, AgentAccess::Command { program: vec!["./a.py".into(), "-x".into()] });
    assert_eq!((near.time_limit_s, near.retries, near.parallel, far.parallel), (5, 3, 1, 9));
    assert_eq!(
        (far.identity(), near.identity()),
        ("http https://host/v1 m".into(), "command [\"./a.py\", \"-x\"]".into())
    );
}

#[test]
fn a_kernel_may_have_rounds_over_its_source_a_template_or_nothing() {
    let package = package(&with(
        "[agents.a]\ncommand = [\"a\"]\n\
         [kernel.own]\noperator = \"o\"\nsource = \"k.cu\"\ngenerate = { agent = \"rules\", rounds = 5, branches = 2, repairs = 0, start = { V = 4 } }\n\
         tune.V = [1, 4]\nlaunch = [{ entry = \"k\", grid = [1], block = [32], args = [\"x\", \"y\"] }]\n\
         [kernel.nothing]\noperator = \"o\"\ngenerate = { agent = \"a\", judge = \"rules\", exemplars = \"package\" }\n",
    ));
    let [own, nothing] = &package.kernels[..] else { panic!() };
    let rounds = own.rounds.as_ref().unwrap();
    assert_eq!((rounds.rounds, rounds.branches, rounds.repairs), (5, 2, 0));
    assert_eq!((rounds.start["V"].1.clone(), rounds.exemplars), (TuneValue::Int(4), Scope::Workspace));
    assert!(!own.is_unstarted() && nothing.is_unstarted());
    let rounds = nothing.rounds.as_ref().unwrap();
    assert_eq!((rounds.agent.as_str(), rounds.rounds, rounds.branches, rounds.repairs), ("a", 3, 4, 3));
    assert_eq!((rounds.judge.as_ref().map(|j| j.as_str()), rounds.exemplars), (Some("rules"), Scope::Package));
}

#[test]
fn what_is_wrong_with_agents_and_rounds_is_said_at_its_place() {
    let launch = "launch = [{ entry = \"k\", grid = [1], block = [32], args = [\"x\", \"y\"] }]\n";
    for (text, expected) in [
        (
            "[agents.a]\nhttp = \"https://h\"\nmodel = \"m\"\nkey = \"sk-secret-123\"\n".to_string(),
            "manifest.secret | a | `key` of `agents.a` is not the name of an environment variable | the name of a variable, such as `OPENAI_API_KEY`; never the key itself | ",
        ),
        (
            "[agents.a]\n".into(),
            "manifest.conflict | a | `agents.a` is neither an endpoint nor a program | `http` or `command` | ",
        ),
        (
            "[agents.a]\nhttp = \"https://h\"\n".into(),
            "manifest.missing-key | a | `agents.a` lacks `model` | `model`: what the endpoint is asked for | ",
        ),
        (
            "[agents.a]\nhttp = \"h\"\nmodel = \"m\"\n".into(),
            "manifest.value | \"h\" | `h` is not an address | `https://host/path` or `http://host/path` | ",
        ),
        (
            "[agents.a]\ncommand = [\"x\"]\nmodel = \"m\"\n".into(),
            "manifest.conflict | a | `agents.a` is a program and states `model` | `http` with it, or neither | ",
        ),
        (
            "[agents.a]\ncommand = [\"x\"]\nbudget = { money = 1 }\n".into(),
            "manifest.missing-key | a | `agents.a` has a budget of money and no prices | `prices = { input = ..., output = ... }`, of a million tokens | ",
        ),
        (
            "[agents.rules]\ncommand = [\"x\"]\n".into(),
            "manifest.name | rules | `rules` is built in | another name for your own agent | ",
        ),
        (
            format!("[kernel.k]\noperator = \"o\"\nsource = \"k.cu\"\ngenerate = {{ agent = \"rule\" }}\n{launch}"),
            "manifest.unknown-agent | \"rule\" | unknown agent `rule` | one of `rules` | did you mean `rules`?",
        ),
        (
            format!(
                "[kernel.k]\noperator = \"o\"\nsource = \"k.cu\"\ngenerate = {{ agent = \"rules\", rounds = 0 }}\n{launch}"
            ),
            "manifest.value | 0 | `rounds` cannot be 0 | 1 to 1000 | ",
        ),
        (
            format!(
                "[kernel.k]\noperator = \"o\"\nsource = \"k.cu\"\ntune.V = [1, 2]\ngenerate = {{ agent = \"rules\", start = {{ V = 3 }} }}\n{launch}"
            ),
            "manifest.value | V | `V` is never `3` | one of `1`, `2` | ",
        ),
        (
            format!(
                "[kernel.k]\noperator = \"o\"\nsource = \"k.cu\"\ntune = {{ V = [1, 2], strategy = \"random\" }}\ngenerate = {{ agent = \"rules\" }}\n{launch}"
            ),
            "manifest.conflict | \"rules\" | kernel `k` has rounds and a search over its tunables | `generate.agent` or `tune.strategy`: each says which variants are tried | ",
        ),
        (
            "[kernel.k]\noperator = \"o\"\ngenerate = { agent = \"rules\" }\n".into(),
            "manifest.missing-key | \"rules\" | `rules` cannot write a kernel, and `k` has none to start from | a `template` as well, or your own `source` and launches | ",
        ),
        (
            "[kernel.k]\noperator = \"o\"\ngenerate = { template = \"elementwise\", rounds = 2 }\n".into(),
            "manifest.missing-key | rounds | `generate` states `rounds` and no agent | `agent`: `rules`, or one of `agents` | ",
        ),
    ] {
        let found: Vec<String> = read(&with(&text)).2.iter().map(show).collect();
        assert_eq!(found, [expected], "{text}");
    }
}

#[test]
fn what_stands_where_a_keys_name_belongs_is_not_shown() {
    let found = read(&with("[agents.a]\nhttp = \"https://h\"\nmodel = \"m\"\nkey = \"sk-secret-123\"\n")).2;
    let shown: String = found
        .iter()
        .map(|d| kforge_foundation::base::render::render(d, kforge_foundation::base::render::Look::default()))
        .collect();
    assert!(shown.contains("agents.a") && !shown.contains("sk-secret"), "{shown}");
}
