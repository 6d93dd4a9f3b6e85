//! The settings of `cofferdam serve` and `cofferdam control`, from their flags, the environment and a file.

use crate::args::{CapacityArgs, ObserveArgs, ServiceArgs};
use crate::config::{self, Config, Flag};
use crate::exit::Failure;

pub(super) fn read(args: &ServiceArgs, capacity: Option<&CapacityArgs>) -> Result<Config, Failure> {
    let flags = flags(args, capacity)?;
    let loaded = config::load(file(args).as_deref(), config::environment(), &flags)?;
    Ok(loaded.config)
}

fn file(args: &ServiceArgs) -> Option<std::path::PathBuf> {
    args.config.clone().or_else(config::default_file)
}

/// The flags that were given. Those of a setting's own come last, so they go over `--set`.
fn flags(args: &ServiceArgs, capacity: Option<&CapacityArgs>) -> Result<Vec<Flag>, Failure> {
    let ServiceArgs {
        config: _,
        data,
        listen,
        database,
        artifacts,
        tls_cert,
        tls_key,
        plain_http_anywhere,
        dev_no_auth,
        lease,
        observe: ObserveArgs { metrics_listen, log },
        webhook_allow,
        webhook_http,
        set,
    } = args;
    let switch = |on: &bool| on.then(|| "true".to_owned());
    let (plain, no_auth) = (switch(plain_http_anywhere), switch(dev_no_auth));
    let hooks_http = switch(webhook_http);
    let hooks_allow = (!webhook_allow.is_empty()).then(|| webhook_allow.join(","));
    let mut flags = Vec::new();
    for text in set {
        let Some((name, value)) = text.split_once('=') else {
            let fix = "write it as NAME=VALUE, such as limits.memory_max=4g";
            return Err(Failure::new(format!("--set: {text:?} is not valid: {fix}")));
        };
        let (name, value) = (name.trim().to_owned(), value.to_owned());
        flags.push(Flag { name: "--set".to_owned(), setting: name, value });
    }
    let own = [
        ("--data", "serve.data", data),
        ("--listen", "serve.listen", listen),
        ("--database", "serve.database", database),
        ("--artifacts", "serve.artifacts", artifacts),
        ("--slots", "serve.slots", capacity.map_or(&None, |capacity| &capacity.slots)),
        ("--cpus", "serve.cpus", capacity.map_or(&None, |capacity| &capacity.cpus)),
        ("--memory", "serve.memory", capacity.map_or(&None, |capacity| &capacity.memory)),
        ("--tls-cert", "tls.cert", tls_cert),
        ("--tls-key", "tls.key", tls_key),
        ("--plain-http-anywhere", "serve.plain_http_anywhere", &plain),
        ("--lease", "serve.lease", lease),
        ("--dev-no-auth", "serve.dev_no_auth", &no_auth),
        ("--metrics-listen", "observe.metrics_listen", metrics_listen),
        ("--log-format", "observe.log_format", &log.log_format),
        ("--log-level", "observe.log_level", &log.log_level),
        ("--otlp", "observe.otlp", &log.otlp),
        ("--webhook-allow", "webhooks.allow", &hooks_allow),
        ("--webhook-http", "webhooks.http", &hooks_http),
    ];
    for (flag, setting, value) in own {
        if let Some(value) = value {
            flags.push(Flag { name: flag.to_owned(), setting: setting.to_owned(), value: value.clone() });
        }
    }
    Ok(flags)
}
