DROP VIEW IF EXISTS jobs_with_status;
DROP TABLE IF EXISTS locks, workers, unique_keys, job_failures, jobs_finished, jobs_processing, jobs_new, jobs_scheduled, jobs, job_schema_versions;
