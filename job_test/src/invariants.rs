/// Where a job may be, one table at a time.
const STATUS_TABLES: [&str; 4] = ["jobs_scheduled", "jobs_new", "jobs_processing", "jobs_finished"];

/// A message for each invariant that is broken, with the ids of the jobs that break it.
pub(crate) fn broken(ids: impl Fn(&str) -> Vec<i64>) -> Vec<String> {
    queries()
        .into_iter()
        .filter_map(|(rule, sql)| {
            let ids = ids(&sql);
            (!ids.is_empty()).then(|| format!("{rule}: {} jobs, such as {}", ids.len(), sample(&ids)))
        })
        .collect()
}

fn sample(ids: &[i64]) -> String {
    let shown: Vec<String> = ids.iter().take(20).map(i64::to_string).collect();
    shown.join(", ")
}

/// Each rule with a query for the jobs that break it, in SQL that the three databases share. They are outer joins, not NOT
/// IN, which PostgreSQL runs in quadratic time when there are many rows.
fn queries() -> Vec<(&'static str, String)> {
    let places = STATUS_TABLES
        .map(|table| format!("SELECT job_id FROM {table}"))
        .join(" UNION ALL ");
    vec![
        (
            "a job is in no status table",
            format!(
                "SELECT j.id FROM jobs j LEFT JOIN ({places}) p ON p.job_id = j.id
                 WHERE p.job_id IS NULL ORDER BY j.id"
            ),
        ),
        (
            "a job is in more than one status table, or twice in one",
            format!("SELECT job_id FROM ({places}) p GROUP BY job_id HAVING count(*) > 1 ORDER BY job_id"),
        ),
        (
            "a status table has a row without its job",
            format!(
                "SELECT p.job_id FROM ({places}) p LEFT JOIN jobs j ON j.id = p.job_id
                 WHERE j.id IS NULL ORDER BY p.job_id"
            ),
        ),
        (
            "queue, priority or kind in jobs_new are not the job's",
            "SELECT n.job_id FROM jobs_new n JOIN jobs j ON j.id = n.job_id
             WHERE n.queue <> j.queue OR n.priority <> j.priority OR n.kind <> j.kind ORDER BY n.job_id"
                .into(),
        ),
        (
            "a unique key is held for a job that is gone, has ended, or has another key",
            "SELECT u.job_id FROM unique_keys u
             LEFT JOIN jobs j ON j.id = u.job_id LEFT JOIN jobs_finished f ON f.job_id = u.job_id
             WHERE j.id IS NULL OR j.unique_key IS NULL OR j.unique_key <> u.unique_key OR f.job_id IS NOT NULL
             ORDER BY u.job_id"
                .into(),
        ),
        (
            "a job that has not ended does not hold its unique key",
            "SELECT j.id FROM jobs j
             LEFT JOIN unique_keys u ON u.job_id = j.id LEFT JOIN jobs_finished f ON f.job_id = j.id
             WHERE j.unique_key IS NOT NULL AND u.job_id IS NULL AND f.job_id IS NULL ORDER BY j.id"
                .into(),
        ),
    ]
}
