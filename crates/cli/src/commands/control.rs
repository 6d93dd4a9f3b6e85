//! `cofferdam control`: the API and the queue, for workers in other processes.

use super::local_worker::RequestChecker;
use super::{roles, serve};
use crate::args::ControlArgs;
use crate::exit::Failure;
use cofferdam_control::{Control, Settings, SigningSettings, Workers};
use cofferdam_http::TlsListener;
use cofferdam_remote::HttpWorkers;
use cofferdam_store::Store;
use std::process::ExitCode;
use std::sync::Arc;

pub(super) fn control(args: &ControlArgs) -> Result<ExitCode, Failure> {
    let tls = roles::tls(&args.tls)?;
    let address = roles::parse_address(&args.listen, tls.is_some())?;
    let lease = roles::lease(args.lease.as_deref())?;
    let authorities =
        args.worker_ca.as_deref().map(|path| roles::read_pem("--worker-ca", path)).transpose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let folder = roles::DataFolder::open(&args.data)?;
        let tokens = folder.service_tokens(args.service_token_file.as_deref())?;
        let remote = HttpWorkers::new(&tokens, authorities.as_deref())?;
        let location = serve::location(&args.data, args.database.as_deref());
        let store = Store::open(&location).await?;
        serve::first_key(&store, &args.data).await?;
        let workers =
            Workers { checker: Arc::new(RequestChecker), local: None, remote: Some(Arc::new(remote)) };
        let signing = SigningSettings { folder: Some(args.data.join("signing")) };
        let settings = Settings { lease, node: folder.node(&location)?, signing };
        let control = Control::start(store.clone(), workers, settings).await?;
        let listener = roles::listen(address).await?;
        let address = listener.local_addr()?;
        let router = cofferdam_http::router_with_workers(control.clone(), tokens);
        let drained = serve::drained(control);
        match tls {
            Some((certificates, key)) => {
                let listener = TlsListener::new(listener, &certificates, &key)?;
                println!("listening on https://{address}");
                cofferdam_http::serve(listener, router, drained).await?;
            }
            None => {
                println!("listening on http://{address}");
                cofferdam_http::serve(listener, router, drained).await?;
            }
        }
        store.close().await;
        Ok(ExitCode::SUCCESS)
    })
}
