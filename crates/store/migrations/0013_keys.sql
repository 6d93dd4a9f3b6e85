-- Which master key everything sealed here is under. One row.
CREATE TABLE master_key (
    id BIGINT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    changed_at_ms BIGINT NOT NULL
);
