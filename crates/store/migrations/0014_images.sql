-- Images that were registered. Those of nobody in particular (owner is empty) are for all tenants. Profiles and
-- capabilities are words with a space before and after each, so that one can be looked for.
CREATE TABLE images (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    profiles TEXT NOT NULL,
    capabilities TEXT NOT NULL,
    has_credentials BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    UNIQUE (owner, name)
);
CREATE INDEX images_by_age ON images (owner, created_at_ms, id)
