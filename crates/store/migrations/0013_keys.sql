-- Which master key everything sealed here is under. One row.
CREATE TABLE master_key (
    id BIGINT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    changed_at_ms BIGINT NOT NULL
);
-- The keys of what sessions' steps are and write. Small rows by themselves, so that a key lies in one piece.
CREATE TABLE session_keys (
    session_id TEXT PRIMARY KEY REFERENCES sessions (id),
    wrapped_key TEXT NOT NULL
);
