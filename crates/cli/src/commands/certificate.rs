//! A certificate that changes while the server runs: at SIGHUP, and when its files change.

use cofferdam_http::{Tls, TlsError};
use tokio::signal::unix::{SignalKind, signal};

pub(super) fn keep_fresh(tls: Tls) {
    tokio::spawn(tls.clone().watch(tell));
    tokio::spawn(async move {
        let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
        while hangup.recv().await.is_some() {
            tell(tls.reload());
        }
    });
}

fn tell(reloaded: Result<(), TlsError>) {
    match reloaded {
        Ok(()) => tracing::info!("the certificate was read again"),
        Err(error) => tracing::error!("the certificate stays as it was: {error}"),
    }
}
