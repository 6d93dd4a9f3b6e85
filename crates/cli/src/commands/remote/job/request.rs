//! From the words of `job run` to a request on the wire. What is not given is not sent: its default is the service's.

use crate::args::JobRunArgs;
use crate::commands::remote::secret_uses;
use crate::commands::run::{FileSource, Words, parse_words, read_files, read_variable};
use crate::exit::Failure;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cofferdam_api::{Command, InlineFile, JobRequest, LimitsRequest};
use cofferdam_core::{ByteSize, Cpus, InvalidValue, NetworkPolicy, parse_duration};
use cofferdam_worker::Work;
use cofferdam_worker::runtime::file_argv;
use std::io::Read;

pub(super) fn request(args: &JobRunArgs) -> Result<JobRequest, Failure> {
    let run = args.as_run();
    let words = parse_words(&run)?;
    let files = read_files(&words, &run)?;
    let network = args.network.as_deref().map(|text| NetworkPolicy::parse("--network", text));
    network.transpose()?;
    let mut request = work(words);
    request.files = files.iter().map(inline).collect::<Result<_, _>>()?;
    request.env = args.env.iter().map(|text| read_variable("--env", text)).collect::<Result<_, _>>()?;
    let notes = args.metadata.iter().map(|text| read_variable("--metadata", text));
    request.metadata = notes.collect::<Result<_, _>>()?;
    request.limits = limits(args)?;
    let timeout = args.timeout.as_deref().map(|text| milliseconds("--timeout", text));
    request.timeout_ms = timeout.transpose()?;
    request.network_policy.clone_from(&args.network);
    request.task_id.clone_from(&args.task_id);
    request.agent.clone_from(&args.agent);
    request.secrets = secret_uses(&args.secret);
    if args.stdin {
        request.stdin = Some(input()?);
    }
    Ok(request)
}

/// A file is run as itself, under its own name, with what `run` would run it with.
fn work(words: Words) -> JobRequest {
    let Words { work, args, script: _ } = words;
    match work {
        Work::Code { runtime, code } => JobRequest {
            language: Some(runtime.name.to_owned()),
            code: Some(code),
            args,
            ..JobRequest::default()
        },
        Work::File { runtime, path } => {
            let argv = file_argv(runtime, &path, &args);
            JobRequest { command: Some(Command::Argv(argv)), ..JobRequest::default() }
        }
        // The words of `job run` name no tool.
        Work::Tool => JobRequest::default(),
        Work::Command { argv } => JobRequest { command: Some(Command::Argv(argv)), ..JobRequest::default() },
    }
}

fn inline(source: &FileSource) -> Result<InlineFile, Failure> {
    let bytes = std::fs::read(&source.host)
        .map_err(|error| Failure::new(format!("{}: {error}", source.host.display())))?;
    let path = source.guest.as_str().to_owned();
    Ok(match String::from_utf8(bytes) {
        Ok(text) => InlineFile { path, content: Some(text), content_base64: None, artifact: None },
        Err(error) => InlineFile {
            path,
            content: None,
            content_base64: Some(STANDARD.encode(error.as_bytes())),
            artifact: None,
        },
    })
}

pub(super) fn limits(args: &JobRunArgs) -> Result<LimitsRequest, InvalidValue> {
    let size = |option: &str, text: &Option<String>| {
        text.as_deref().map(|text| ByteSize::parse(option, text).map(|size| size.0)).transpose()
    };
    let cpus = args.cpus.as_deref().map(|text| {
        Cpus::parse("--cpus", text)?;
        text.parse().map_err(|_| InvalidValue::new("--cpus", text, "write a number such as 0.5"))
    });
    let pids = args.pids.as_deref().map(|text| {
        let fix = "write a whole number of processes, such as 100";
        text.parse().map_err(|_| InvalidValue::new("--pids", text, fix))
    });
    Ok(LimitsRequest {
        cpus: cpus.transpose()?,
        memory_bytes: size("--memory", &args.memory)?,
        disk_bytes: size("--disk", &args.disk)?,
        pids: pids.transpose()?,
        grace_ms: args.grace.as_deref().map(|text| milliseconds("--grace", text)).transpose()?,
        output_bytes: None,
    })
}

pub(super) fn milliseconds(option: &str, text: &str) -> Result<u64, InvalidValue> {
    Ok(u64::try_from(parse_duration(option, text)?.as_millis()).unwrap_or(u64::MAX))
}

/// All of standard input. The wire has it as text.
fn input() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    let fix = "standard input is not UTF-8, which is all that the service takes there; pass it with --file";
    String::from_utf8(bytes).map_err(|_| Failure::new(fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str]) -> JobRunArgs {
        use crate::args::{Cli, Command as Top, JobCommand};
        use clap::Parser;
        let line = ["cofferdam", "job", "run"].iter().chain(words);
        match Cli::try_parse_from(line).unwrap().command {
            Top::Job { command: JobCommand::Run(args) } => *args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_not_given_is_left_to_the_service() {
        let got = request(&args(&["-c", "print(1)"])).unwrap();
        let expected = JobRequest {
            language: Some("python".into()),
            code: Some("print(1)".into()),
            ..JobRequest::default()
        };
        assert_eq!(got, expected);
    }

    #[test]
    fn options_mean_what_they_mean_to_run() {
        let line = ["--memory", "512m", "--cpus", "0.5", "--pids", "7", "--timeout", "3s", "--grace", "1s"];
        let rest =
            ["--env", "A=b=c", "--metadata", "k=v", "--task-id", "t", "--network", "none", "--", "ls", "-l"];
        let got = request(&args(&[&line[..], &rest[..]].concat())).unwrap();
        assert_eq!(got.command, Some(Command::Argv(vec!["ls".into(), "-l".into()])));
        assert_eq!(
            (got.limits.memory_bytes, got.limits.cpus, got.limits.pids),
            (Some(512 << 20), Some(0.5), Some(7))
        );
        assert_eq!((got.timeout_ms, got.limits.grace_ms), (Some(3000), Some(1000)));
        assert_eq!((got.env["A"].as_str(), got.metadata["k"].as_str()), ("b=c", "v"));
        for wrong in [
            &["--memory", "lots", "--", "ls"][..],
            &["--network", "open", "--", "ls"],
            &["--env", "A", "--", "ls"],
        ] {
            assert!(request(&args(wrong)).is_err(), "{wrong:?}");
        }
    }
}
