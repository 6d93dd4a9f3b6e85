ALTER TABLE artifacts ADD COLUMN session_id TEXT;
ALTER TABLE artifacts ADD COLUMN step_id TEXT;
CREATE INDEX artifacts_by_session ON artifacts (session_id, created_at_ms, id) WHERE session_id IS NOT NULL;
