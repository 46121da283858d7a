-- Gatun's tables. A job's facts never change; its status is the one status table in which it has a row.
-- DDL is not transactional here, so each statement can be run again after an interruption.
-- Times are DATETIME in UTC, always written by UTC_TIMESTAMP(6); documents are text, since the JSON types of
-- MySQL and MariaDB refuse documents that are nested deeply. Names are VARBINARY, so that they are compared byte by byte:
-- for the collations that both servers have, 'a' and 'a ' are the same.
CREATE TABLE IF NOT EXISTS job_schema_versions (
    version    BIGINT NOT NULL PRIMARY KEY,
    applied_at DATETIME(6) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Facts: appended, pruned, never updated.
CREATE TABLE IF NOT EXISTS jobs (
    id           BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    kind         VARBINARY(255) NOT NULL,
    queue        VARBINARY(255) NOT NULL,
    priority     INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    args         LONGTEXT NOT NULL,
    unique_key   VARBINARY(255),
    created_at   DATETIME(6) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Status "scheduled": due later, or waiting for a retry.
CREATE TABLE IF NOT EXISTS jobs_scheduled (
    run_at    DATETIME(6) NOT NULL,
    job_id    BIGINT NOT NULL,
    attempts  INTEGER NOT NULL,
    uncharged INTEGER NOT NULL,
    PRIMARY KEY (run_at, job_id),
    UNIQUE KEY jobs_scheduled_job_id (job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Status "new": may be claimed now, in the order of the key.
CREATE TABLE IF NOT EXISTS jobs_new (
    queue     VARBINARY(255) NOT NULL,
    priority  INTEGER NOT NULL,
    job_id    BIGINT NOT NULL,
    kind      VARBINARY(255) NOT NULL,
    attempts  INTEGER NOT NULL,
    uncharged INTEGER NOT NULL,
    PRIMARY KEY (queue, priority, job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Status "processing": claimed by a worker.
CREATE TABLE IF NOT EXISTS jobs_processing (
    job_id     BIGINT NOT NULL PRIMARY KEY,
    worker     BIGINT NOT NULL,
    attempts   INTEGER NOT NULL,
    uncharged  INTEGER NOT NULL,
    started_at DATETIME(6) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Status "completed", "failed" or "cancelled", as in the column.
CREATE TABLE IF NOT EXISTS jobs_finished (
    job_id      BIGINT NOT NULL PRIMARY KEY,
    status      SMALLINT NOT NULL CHECK (status IN (3, 4, 5)),
    attempts    INTEGER NOT NULL,
    uncharged   INTEGER NOT NULL,
    started_at  DATETIME(6),
    finished_at DATETIME(6) NOT NULL,
    worker      BIGINT,
    result      LONGTEXT,
    error       LONGTEXT,
    KEY jobs_finished_status (status, job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS job_failures (
    job_id    BIGINT NOT NULL,
    attempt   INTEGER NOT NULL,
    failed_at DATETIME(6) NOT NULL,
    error     LONGTEXT NOT NULL,
    PRIMARY KEY (job_id, attempt)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Holds a unique key from enqueue to the end of its job.
CREATE TABLE IF NOT EXISTS unique_keys (
    unique_key VARBINARY(255) NOT NULL PRIMARY KEY,
    job_id     BIGINT NOT NULL,
    UNIQUE KEY unique_keys_job_id (job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS workers (
    id         BIGINT NOT NULL PRIMARY KEY,
    host       VARCHAR(255) NOT NULL,
    pid        BIGINT NOT NULL,
    started_at DATETIME(6) NOT NULL,
    beat_at    DATETIME(6) NOT NULL,
    kinds      LONGTEXT NOT NULL,
    queues     LONGTEXT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS locks (
    name        VARBINARY(255) NOT NULL PRIMARY KEY,
    token       BIGINT NOT NULL DEFAULT 0,
    owner       VARCHAR(255),
    acquired_at DATETIME(6),
    expires_at  DATETIME(6)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- For people: every job with its status in one place.
CREATE OR REPLACE VIEW jobs_with_status AS
SELECT j.id,
       CONVERT(j.kind USING utf8mb4) COLLATE utf8mb4_bin AS kind,
       CONVERT(j.queue USING utf8mb4) COLLATE utf8mb4_bin AS queue,
       j.priority,
       CASE WHEN s.job_id IS NOT NULL THEN 'scheduled'
            WHEN n.job_id IS NOT NULL THEN 'new'
            WHEN p.job_id IS NOT NULL THEN 'processing'
            WHEN f.status = 3 THEN 'completed'
            WHEN f.status = 4 THEN 'failed'
            WHEN f.status = 5 THEN 'cancelled' END AS status,
       COALESCE(s.attempts - s.uncharged, n.attempts - n.uncharged, p.attempts - p.uncharged, f.attempts - f.uncharged) AS attempts,
       j.max_attempts,
       CONVERT(j.unique_key USING utf8mb4) COLLATE utf8mb4_bin AS unique_key,
       j.created_at, s.run_at,
       COALESCE(p.started_at, f.started_at) AS started_at, f.finished_at,
       COALESCE(p.worker, f.worker) AS worker, j.args, f.result, f.error
FROM jobs j
LEFT JOIN jobs_scheduled s ON s.job_id = j.id
LEFT JOIN jobs_new n ON n.queue = j.queue AND n.priority = j.priority AND n.job_id = j.id
LEFT JOIN jobs_processing p ON p.job_id = j.id
LEFT JOIN jobs_finished f ON f.job_id = j.id;

INSERT IGNORE INTO job_schema_versions (version, applied_at) VALUES (1, UTC_TIMESTAMP(6));
