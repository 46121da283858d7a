//! Two more kinds of jobs, and the app's own tables.

use crate::{CountWords, Library, Words};
use diesel::prelude::*;
use job_core::{Job, Perform, Run, Status, snooze};
use serde::{Deserialize, Serialize};
use std::time::Duration;

diesel::table! {
    documents (path) { path -> Text, sections -> BigInt }
}
diesel::table! {
    totals (word) { word -> Text, count -> BigInt }
}

/// Adds up the results of all sections, when the last one is there.
#[derive(Serialize, Deserialize)]
pub(crate) struct SumUp;

#[derive(Serialize, Deserialize)]
pub(crate) struct Sum {
    pub(crate) sections: usize,
    pub(crate) words: i64,
    pub(crate) distinct: usize,
}

impl Perform for SumUp {
    const KIND: &'static str = "sum_up";
    type Context = Library;
    type Output = Sum;

    fn perform(&self, run: &Run<'_, Library>) -> anyhow::Result<Sum> {
        // The job's writes and its completion are one transaction: the totals are written exactly once.
        run.transaction(|conn: &mut SqliteConnection| {
            if Job::counts_in(conn, CountWords::QUEUE)?.unfinished() > 0 {
                return Err(snooze(Duration::from_millis(200))); // "later, please": this is no failed attempt
            }
            let (mut sections, mut sum) = (0, Words::new());
            let mut page = Job::filter()
                .kind(CountWords::KIND)
                .status(Status::Completed)
                .limit(500);
            loop {
                let jobs = page.load(conn)?;
                for job in &jobs {
                    sections += 1;
                    for (word, count) in job.output::<Words>()? {
                        *sum.entry(word).or_default() += count;
                    }
                }
                let Some(last) = jobs.last() else { break };
                page = page.before(last.id);
            }
            for (word, count) in &sum {
                let row = (totals::word.eq(word), totals::count.eq(count));
                diesel::insert_into(totals::table).values(row).execute(conn)?;
            }
            let words = sum.values().sum();
            Ok(Sum {
                sections,
                words,
                distinct: sum.len(),
            })
        })
    }
}

/// Is not due at once.
#[derive(Serialize, Deserialize)]
pub(crate) struct Remind {
    of: String,
}

impl Remind {
    pub(crate) fn of(what: &str) -> Self {
        Remind { of: what.into() }
    }
}

impl Perform for Remind {
    const KIND: &'static str = "remind";
    type Context = Library;
    type Output = String;

    fn perform(&self, _run: &Run<'_, Library>) -> anyhow::Result<String> {
        Ok(format!("remember {}", self.of))
    }
}
