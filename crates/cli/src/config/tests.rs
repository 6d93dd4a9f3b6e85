use super::*;
use std::sync::atomic::{AtomicU32, Ordering};

struct File(PathBuf);

impl File {
    fn new(text: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("cofferdam-config-{}-{number}.toml", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn with(
    text: &str,
    environment: &[(&str, &str)],
    flags: &[(&str, &str, &str)],
) -> (File, Result<Loaded, ConfigErrors>) {
    let file = File::new(text);
    let environment = environment.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
    let flags: Vec<_> = flags
        .iter()
        .map(|&(name, setting, value)| Flag {
            name: name.into(),
            setting: setting.into(),
            value: value.into(),
        })
        .collect();
    let loaded = load(Some(&file.0), environment, &flags);
    (file, loaded)
}

/// The only error, without the file's name.
fn error(text: &str) -> String {
    let (file, loaded) = with(text, &[], &[]);
    let errors = loaded.expect_err(text).0;
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors[0].replace(&file.0.display().to_string(), "FILE")
}

#[test]
fn flags_go_over_the_environment_and_that_over_the_file() {
    let text = "[serve]\nslots = 1\nmemory = \"1g\"\n\n[limits]\npids = 7\n";
    let (file, loaded) = with(
        text,
        &[
            ("COFFERDAM_SERVE_SLOTS", "2"),
            ("COFFERDAM_SERVE_MEMORY", "2g"),
            ("COFFERDAM_URL", "x"),
            ("HOME", "/"),
        ],
        &[("--slots", "serve.slots", "3")],
    );
    let loaded = loaded.unwrap();
    assert_eq!(loaded.config.serve.slots, Some(3));
    assert_eq!(loaded.config.serve.memory_bytes, Some(2 << 30));
    assert_eq!(loaded.config.control.limits.default.pids, 7);
    assert_eq!(loaded.origin("serve.slots"), &Origin::Flag { name: "--slots".into() });
    assert_eq!(loaded.origin("serve.memory").to_string(), "environment COFFERDAM_SERVE_MEMORY");
    assert_eq!(loaded.origin("limits.pids").to_string(), format!("{}:6", file.0.display()));
    assert_eq!(loaded.origin("limits.cpus"), &Origin::Default);
}

#[test]
fn what_is_wrong_is_named_with_file_line_key_value_and_fix() {
    for (text, expected) in [
        ("[limits]\n\nmemory = \"lots\"", "FILE:3: limits.memory: \"lots\" is not valid: write whole bytes"),
        ("[limits]\nmemroy = 4", "FILE:2: limits.memroy: 4 is for no setting: did you mean limits.memory?"),
        ("[limits]\ncolour = 4", "FILE:2: limits.colour: 4 is for no setting: [limits] has cpus,"),
        ("[lights]\npids = 4", "FILE:2: lights.pids: 4 is for no setting: the sections are [serve], [tls], "),
        ("pids = 4", "FILE:1: pids: 4 is for no setting: the sections are"),
        ("[limits]\npids = \"4\"", "FILE:2: limits.pids: \"4\" is text: write a whole number"),
        ("[limits]\npids = 0", "FILE:2: limits.pids: \"0\" is not valid: write a whole number, at least 1"),
        ("[limits]\npids = [1]", "FILE:2: limits.pids: [1] is a list: write a whole number"),
        ("[limits]\ntimeout = 30", "FILE:2: limits.timeout: 30 is a whole number: write a time such as"),
        (
            "[serve]\nlisten = \"here\"",
            "FILE:2: serve.listen: \"here\" is not valid: write an address and a port",
        ),
        (
            "[limits]\npids = 200\npids_max = 100",
            "FILE:2: limits.pids: \"200\" is not valid: it is more than pids_max",
        ),
        (
            "[limits]\nmemory_max = \"1g\"",
            "default: limits.memory: \"2g\" is not valid: it is more than memory_max",
        ),
        (
            "[limits]\noutput_max = \"9m\"",
            "FILE:2: limits.output_max: \"9m\" is not valid: it must be at most 8m",
        ),
        (
            "[limits]\nmemory = \"1m\"",
            "FILE:2: limits.memory: \"1048576\" is not valid: it must be at least 4194304, which is 4 MiB",
        ),
        (
            "[limits]\ndisk_max = \"1k\"",
            "FILE:2: limits.disk_max: \"1k\" is not valid: it must be at least 4k",
        ),
        ("[limits\npids = 1", "FILE:1: it is not TOML: "),
        (
            "[serve]\nlisten = \"0.0.0.0:80\"",
            "FILE:2: serve.listen: \"0.0.0.0:80\" is not valid: without TLS only loopback",
        ),
        (
            "[tls]\ncert = \"c.pem\"",
            "FILE:2: tls.cert: \"c.pem\" is not valid: a certificate and its key go together",
        ),
        ("[jwt]\nissuer = \"x\"", "default: jwt.audience: \"\" is not valid: say what tokens have to be for"),
        (
            "[http]\nmax_header_bytes = \"1k\"",
            "FILE:2: http.max_header_bytes: \"1k\" is not valid: it must be from 8k",
        ),
    ] {
        let error = error(text);
        assert!(error.starts_with(expected), "{text}\n{error}\n{expected}");
    }
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let text = "[limits]\npids = true\ncpus = 0\n";
    let (_file, loaded) = with(text, &[("COFFERDAM_LIMITS_PIDZ", "1")], &[("--set", "serve.x", "1")]);
    let errors = loaded.unwrap_err().0;
    assert_eq!(errors.len(), 4, "{errors:?}");
    assert_eq!(errors[2], "COFFERDAM_LIMITS_PIDZ: \"1\" is for no setting: did you mean limits.pids?");
}

#[test]
fn a_missing_file_is_named() {
    let error = load(Some(Path::new("/nowhere/x.toml")), [], &[]).unwrap_err().0;
    assert!(error[0].starts_with("/nowhere/x.toml: No such file"), "{error:?}");
}

/// Every setting can be written as it is shown: the documentation's defaults are valid.
#[test]
fn what_is_shown_can_be_read_again() {
    let default = Config::default();
    for section in sections::ALL {
        for setting in section.settings {
            let shown = (setting.get)(&default);
            let mut config = Config::default();
            if !shown.is_empty() {
                assert_eq!((setting.set)(&mut config, &shown), Ok(()), "{}.{}", section.name, setting.key);
                assert_eq!((setting.get)(&config), shown);
            }
        }
        (section.check)(&default).unwrap_or_else(|clash| panic!("{clash:?}"));
    }
}

#[test]
fn secrets_are_not_shown() {
    let secret = "postgres://user:hunter2@db/x";
    let (_file, loaded) = with(&format!("[serve]\ndatabase = \"{secret}\""), &[], &[]);
    let loaded = loaded.unwrap();
    assert_eq!(loaded.config.serve.database.as_deref(), Some(secret));
    for text in [table(&loaded), json(&loaded).to_string()] {
        assert!(text.contains("********") && !text.contains("hunter2"), "{text}");
    }
    let error = error("[serve]\ndatabase = [\"hunter2\"]");
    assert!(!error.contains("hunter2"), "{error}");
}

#[test]
fn a_tenants_project_is_in_nobody_elses_reach() {
    let settings = |roots: &str, projects: &str| {
        format!("[backends]\nmount_roots = [{roots}]\nproject_roots = [{projects}]\n")
    };
    let (one, other) = ("ten-aaaaaaaaaaaaaaaa", "ten-baaaaaaaaaaaaaaa");
    let clash = error(&settings("\"/srv\"", &format!("\"{one}=/srv/a\"")));
    assert!(clash.contains("FILE:3: backends.project_roots") && clash.contains("/srv"), "{clash}");
    assert!(error("[backends]\nwaiting = 9\n").contains("a whole number from 0 to 8"));
    let clash = error(&settings("", &format!("\"{one}=/srv/a\", \"{other}=/srv/a/b\"")));
    assert!(clash.contains("the project of ten-aaaaaaaaaaaaaaaa"), "{clash}");
    let (_file, loaded) =
        with(&settings("\"/srv/a/shared\"", &format!("\"{one}=/srv/a\", \"{other}=/srv/ab\"")), &[], &[]);
    assert!(loaded.is_ok(), "{:?}", loaded.err());
}
