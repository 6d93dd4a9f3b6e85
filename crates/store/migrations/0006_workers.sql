ALTER TABLE jobs ADD COLUMN owner TEXT;
ALTER TABLE jobs ADD COLUMN cpus_millis BIGINT NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN memory_bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN not_before_ms BIGINT;
ALTER TABLE jobs ADD COLUMN queue_deadline_ms BIGINT;
UPDATE jobs SET owner = worker, lease_until_ms = 0 WHERE state = 'running';
CREATE INDEX jobs_by_lease ON jobs (lease_until_ms) WHERE state = 'running';
CREATE INDEX jobs_by_worker ON jobs (worker) WHERE state = 'running';
CREATE INDEX jobs_by_queue_deadline ON jobs (queue_deadline_ms) WHERE state = 'queued' AND queue_deadline_ms IS NOT NULL;
CREATE TABLE workers (
    id TEXT PRIMARY KEY,
    url TEXT NOT NULL,
    labels TEXT NOT NULL,
    backends TEXT NOT NULL,
    slots BIGINT NOT NULL,
    cpus_millis BIGINT NOT NULL,
    memory_bytes BIGINT NOT NULL,
    is_draining BIGINT NOT NULL,
    registered_at_ms BIGINT NOT NULL,
    heartbeat_at_ms BIGINT NOT NULL
);
