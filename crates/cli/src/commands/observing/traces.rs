//! Traces, sent to a collector by OTLP over HTTP.

use crate::exit::Failure;
use cofferdam_telemetry::TRACE;
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracerProvider, Tracer};
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{FilterFn, Filtered, filter_fn};

pub(super) struct Traces(SdkTracerProvider);

/// Takes spans of traces only; what is logged is none of its business.
pub(super) type Tracing<S> = Filtered<OpenTelemetryLayer<S, Tracer>, FilterFn, S>;

impl Traces {
    /// `address` is the collector's, without the path.
    pub(super) fn begin<S>(address: &str, role: &'static str) -> Result<(Self, Tracing<S>), Failure>
    where
        S: tracing::Subscriber + for<'s> tracing_subscriber::registry::LookupSpan<'s>,
        OpenTelemetryLayer<S, Tracer>: Layer<S>,
    {
        let wrong = |why: String| Failure::new(format!("--otlp: {address:?} cannot be used: {why}"));
        if !address.starts_with("http://") && !address.starts_with("https://") {
            return Err(wrong("it must be a URL such as http://127.0.0.1:4318".to_owned()));
        }
        // Whoever comes first decides for the process; they all decide the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let endpoint = format!("{}/v1/traces", address.trim_end_matches('/'));
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(endpoint)
            .build()
            .map_err(|error| wrong(error.to_string()))?;
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let role = KeyValue::new("cofferdam.role", role);
        let resource = Resource::builder_empty().with_service_name("cofferdam");
        let resource = resource.with_attributes([version, role]).build();
        let provider =
            SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build();
        let tracer = provider.tracer("cofferdam");
        let layer = tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_target(false);
        let ours: fn(&tracing::Metadata<'_>) -> bool =
            |metadata| metadata.is_span() && metadata.target() == TRACE;
        Ok((Self(provider), layer.with_filter(filter_fn(ours))))
    }

    pub(super) fn end(self) {
        let _ = self.0.shutdown();
    }
}
