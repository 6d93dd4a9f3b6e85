//! The context of a trace, as it goes with a request from one process to the next: the `traceparent` of W3C's Trace
//! Context. Whoever calls another process sends [`current_traceparent`], whoever is called gives what came to
//! [`continue_trace`]. Where traces are off, both do nothing.

use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// The target of every span of a trace. Logs leave it out, so that a span costs nothing where nobody exports it.
pub const TRACE: &str = "cofferdam::trace";

/// The name of the current span for another process; none where traces are off.
pub fn current_traceparent() -> Option<String> {
    let span = Span::current();
    if span.is_none() {
        return None;
    }
    let context = span.context();
    let context = context.span().span_context().clone();
    context.is_valid().then(|| {
        format!("00-{}-{}-{:02x}", context.trace_id(), context.span_id(), context.trace_flags().to_u8())
    })
}

/// Makes a span a part of the trace that came with a request. What is not well-formed is left out.
pub fn continue_trace(span: &Span, traceparent: &str) {
    if span.is_disabled() {
        return;
    }
    if let Some(context) = parse_traceparent(traceparent) {
        // It fails for a span that has begun, and then the trace is only not joined.
        let _ = span.set_parent(Context::new().with_remote_span_context(context));
    }
}

/// Version 00 has four parts of fixed lengths; a later version may have more after them.
pub fn parse_traceparent(text: &str) -> Option<SpanContext> {
    let is_hex = |part: &str, length: usize| {
        part.len() == length
            && part.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let mut parts = text.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_whole = is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
    if !is_whole || version == "ff" || (version == "00" && parts.next().is_some()) {
        return None;
    }
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?) & TraceFlags::SAMPLED;
    let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
    let context = SpanContext::new(trace, span, flags, true, TraceState::default());
    context.is_valid().then_some(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_well_formed_is_a_parent() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let context = parse_traceparent(good).unwrap();
        assert_eq!(context.trace_id().to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert!(context.is_remote() && context.is_sampled());
        assert!(parse_traceparent(&format!("01{}-more", &good[2..])).is_some());
        for bad in [
            "",
            "00",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
        ] {
            assert!(parse_traceparent(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn without_traces_there_is_nothing_to_send() {
        assert_eq!(current_traceparent(), None);
    }
}
