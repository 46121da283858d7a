-- Gatun's tables. A job's facts never change; its status is the one status table in which it has a row.
-- Times are integers: microseconds since 1970 in UTC. Texts compare byte by byte, as SQLite does by default.
CREATE TABLE job_schema_versions (
    version    BIGINT NOT NULL PRIMARY KEY,
    applied_at BIGINT NOT NULL
);

-- Facts: appended, pruned, never updated.
CREATE TABLE jobs (
    id           INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    kind         TEXT NOT NULL,
    queue        TEXT NOT NULL,
    priority     INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    args         TEXT NOT NULL,
    unique_key   TEXT,
    created_at   BIGINT NOT NULL
);

-- Status "scheduled": due later, or waiting for a retry.
CREATE TABLE jobs_scheduled (
    run_at    BIGINT NOT NULL,
    job_id    BIGINT NOT NULL,
    attempts  INTEGER NOT NULL,
    uncharged INTEGER NOT NULL,
    PRIMARY KEY (run_at, job_id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX jobs_scheduled_job_id ON jobs_scheduled (job_id);

-- Status "new": may be claimed now, in the order of the key.
CREATE TABLE jobs_new (
    queue     TEXT NOT NULL,
    priority  INTEGER NOT NULL,
    job_id    BIGINT NOT NULL,
    kind      TEXT NOT NULL,
    attempts  INTEGER NOT NULL,
    uncharged INTEGER NOT NULL,
    PRIMARY KEY (queue, priority, job_id)
) WITHOUT ROWID;

-- Status "processing": claimed by a worker.
CREATE TABLE jobs_processing (
    job_id     INTEGER NOT NULL PRIMARY KEY,
    worker     BIGINT NOT NULL,
    attempts   INTEGER NOT NULL,
    uncharged  INTEGER NOT NULL,
    started_at BIGINT NOT NULL
);

-- Status "completed", "failed" or "cancelled", as in the column.
CREATE TABLE jobs_finished (
    job_id      INTEGER NOT NULL PRIMARY KEY,
    status      SMALLINT NOT NULL CHECK (status IN (3, 4, 5)),
    attempts    INTEGER NOT NULL,
    uncharged   INTEGER NOT NULL,
    started_at  BIGINT,
    finished_at BIGINT NOT NULL,
    worker      BIGINT,
    result      TEXT,
    error       TEXT
);
CREATE INDEX jobs_finished_status ON jobs_finished (status, job_id);

CREATE TABLE job_failures (
    job_id    BIGINT NOT NULL,
    attempt   INTEGER NOT NULL,
    failed_at BIGINT NOT NULL,
    error     TEXT NOT NULL,
    PRIMARY KEY (job_id, attempt)
) WITHOUT ROWID;

-- Holds a unique key from enqueue to the end of its job.
CREATE TABLE unique_keys (
    unique_key TEXT NOT NULL PRIMARY KEY,
    job_id     BIGINT NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX unique_keys_job_id ON unique_keys (job_id);

CREATE TABLE workers (
    id         INTEGER NOT NULL PRIMARY KEY,
    host       TEXT NOT NULL,
    pid        BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    beat_at    BIGINT NOT NULL,
    kinds      TEXT NOT NULL,
    queues     TEXT NOT NULL
);

CREATE TABLE locks (
    name        TEXT NOT NULL PRIMARY KEY CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 255),
    token       BIGINT NOT NULL DEFAULT 0,
    owner       TEXT,
    acquired_at BIGINT,
    expires_at  BIGINT
) WITHOUT ROWID;

-- For people: every job with its status in one place.
CREATE VIEW jobs_with_status AS
SELECT j.id, j.kind, j.queue, j.priority,
       CASE WHEN s.job_id IS NOT NULL THEN 'scheduled'
            WHEN n.job_id IS NOT NULL THEN 'new'
            WHEN p.job_id IS NOT NULL THEN 'processing'
            WHEN f.status = 3 THEN 'completed'
            WHEN f.status = 4 THEN 'failed'
            WHEN f.status = 5 THEN 'cancelled' END AS status,
       COALESCE(s.attempts - s.uncharged, n.attempts - n.uncharged, p.attempts - p.uncharged, f.attempts - f.uncharged) AS attempts,
       j.max_attempts, j.unique_key, j.created_at, s.run_at,
       COALESCE(p.started_at, f.started_at) AS started_at, f.finished_at,
       COALESCE(p.worker, f.worker) AS worker, j.args, f.result, f.error
FROM jobs j
LEFT JOIN jobs_scheduled s ON s.job_id = j.id
LEFT JOIN jobs_new n ON n.queue = j.queue AND n.priority = j.priority AND n.job_id = j.id
LEFT JOIN jobs_processing p ON p.job_id = j.id
LEFT JOIN jobs_finished f ON f.job_id = j.id;

INSERT INTO job_schema_versions (version, applied_at)
VALUES (1, CAST(ROUND((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000);
