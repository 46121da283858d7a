#![allow(
    missing_docs,
    reason = "the columns are described in the migrations, next to their constraints"
)]
//! The tables as Diesel sees them, for queries of your own. A test holds them against the catalogue of each database.

use diesel::{allow_tables_to_appear_in_same_query, table};

table! {
    use diesel::sql_types::*;
    use job_db::{Instant, JsonDoc};

    /// A job's facts: appended, pruned, never updated.
    jobs (id) {
        id -> BigInt,
        kind -> Text,
        queue -> Text,
        priority -> Integer,
        max_attempts -> Integer,
        args -> JsonDoc,
        unique_key -> Nullable<Text>,
        created_at -> Instant,
    }
}

table! {
    use diesel::sql_types::*;
    use job_db::Instant;

    /// Jobs that are due later, or wait for a retry.
    jobs_scheduled (run_at, job_id) {
        run_at -> Instant,
        job_id -> BigInt,
        attempts -> Integer,
        uncharged -> Integer,
    }
}

table! {
    /// Jobs that may be claimed now.
    jobs_new (queue, priority, job_id) {
        queue -> Text,
        priority -> Integer,
        job_id -> BigInt,
        kind -> Text,
        attempts -> Integer,
        uncharged -> Integer,
    }
}

table! {
    use diesel::sql_types::*;
    use job_db::Instant;

    /// Jobs that a worker has claimed.
    jobs_processing (job_id) {
        job_id -> BigInt,
        worker -> BigInt,
        attempts -> Integer,
        uncharged -> Integer,
        started_at -> Instant,
    }
}

table! {
    use diesel::sql_types::*;
    use job_db::{Instant, JsonDoc};

    /// Jobs that have ended.
    jobs_finished (job_id) {
        job_id -> BigInt,
        status -> SmallInt,
        attempts -> Integer,
        uncharged -> Integer,
        started_at -> Nullable<Instant>,
        finished_at -> Instant,
        worker -> Nullable<BigInt>,
        result -> Nullable<JsonDoc>,
        error -> Nullable<Text>,
    }
}

table! {
    use diesel::sql_types::*;
    use job_db::Instant;

    /// Failed attempts.
    job_failures (job_id, attempt) {
        job_id -> BigInt,
        attempt -> Integer,
        failed_at -> Instant,
        error -> Text,
    }
}

table! {
    /// The keys of jobs that have not ended.
    unique_keys (unique_key) {
        unique_key -> Text,
        job_id -> BigInt,
    }
}

table! {
    use diesel::sql_types::*;
    use job_db::{Instant, JsonDoc};

    /// The workers that live.
    workers (id) {
        id -> BigInt,
        host -> Text,
        pid -> BigInt,
        started_at -> Instant,
        beat_at -> Instant,
        kinds -> JsonDoc,
        queues -> JsonDoc,
    }
}

allow_tables_to_appear_in_same_query!(
    jobs,
    jobs_scheduled,
    jobs_new,
    jobs_processing,
    jobs_finished,
    job_failures,
    unique_keys,
    workers,
);
