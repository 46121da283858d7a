use job_core::MigrateError;

/// Why a worker did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// No kind of job is registered.
    #[error(
        "the worker has no kind of job: call register::<YourJob>() or register_async::<YourJob>() before run()"
    )]
    NoKinds,
    /// Two kinds of job have one name.
    #[error(
        "two kinds of job are registered by the name `{0}`: give one of them another KIND, or leave out the second \
         register::<J>() if it is the same job"
    )]
    DuplicateKind(&'static str),
    /// There is no queue to look at.
    #[error(
        "the worker has no queue: call queues([…]) with at least one name, or leave it out for `default`"
    )]
    NoQueues,
    /// A queue or a kind has a name that no job can have.
    #[error(transparent)]
    BadName(#[from] job_core::EnqueueError),
    /// There is no thread to perform.
    #[error("threads(0) can perform nothing: choose at least 1")]
    NoThreads,
    /// There is nothing to perform async jobs with: the option that says so.
    #[error("{0}(0) can perform nothing: choose at least 1")]
    NoAsync(&'static str),
    /// The runtime that the app gave performs no jobs: what is wrong with it.
    #[error(
        "the runtime given to Worker::runtime {0}: make it one with several threads and enable_all(), and keep it until the worker has ended"
    )]
    Runtime(&'static str),
    /// The options contradict each other.
    #[error("rescue_after must be at least three times heartbeat, or live workers would be taken for dead")]
    RescueTooSoon,
    /// The database has none of Gatun's tables.
    #[error("the database has none of Gatun's tables: call job_core::migrate(conn) at the start of your app")]
    NotMigrated,
    /// The tables are older than this program.
    #[error(
        "the database has version {database} of Gatun's tables and this worker needs {binary}: \
         call job_core::migrate(conn) first"
    )]
    OldSchema {
        /// The version in the database.
        database: i64,
        /// The version that this worker needs.
        binary: i64,
    },
    /// The tables are newer than this program, belong to somebody else, or the server is too old.
    #[error(transparent)]
    Schema(#[from] MigrateError),
    /// The database could not be reached at the start.
    #[error("the database could not be reached, check its URL and whether it runs: {0}")]
    Unreachable(String),
    /// The database said no.
    #[error(transparent)]
    Job(#[from] job_core::JobError),
    /// A thread of the worker's own panicked, which is a fault of Gatun's: the worker has stopped, and its jobs are safe.
    #[error(
        "the worker's thread {0} panicked, which is a fault of Gatun's: restart the worker, and report the panic"
    )]
    Panicked(&'static str),
    /// The system gave no thread, or no signals.
    #[error("the system gave no thread or no signals: {0}")]
    System(#[from] std::io::Error),
}

impl From<diesel::result::Error> for WorkerError {
    fn from(error: diesel::result::Error) -> Self {
        WorkerError::Job(error.into())
    }
}
