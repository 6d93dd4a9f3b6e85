CREATE TABLE probes (
    id BIGINT PRIMARY KEY,
    at_ms BIGINT NOT NULL,
    bytes {{bytes}} NOT NULL
);
ALTER TABLE jobs ADD COLUMN traceparent TEXT;
ALTER TABLE jobs ADD COLUMN has_webhook BIGINT NOT NULL DEFAULT 0;
CREATE TABLE webhooks (
    job_id TEXT PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    url TEXT NOT NULL,
    secret TEXT NOT NULL,
    events TEXT NOT NULL
);
CREATE TABLE webhook_deliveries (
    event_id TEXT PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    job_id TEXT NOT NULL,
    url TEXT NOT NULL,
    secret TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    next_at_ms BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT,
    last_error TEXT
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_at_ms) WHERE state = 'waiting';
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (ended_at_ms) WHERE state <> 'waiting';
CREATE INDEX webhook_deliveries_of_job ON webhook_deliveries (tenant_id, job_id, created_at_ms, event_id);
