//! docs

mod backend;
mod bar;
mod batch;
mod bounds;
mod control;
mod error;
mod hand;
mod key;
mod namespace;
mod options;
mod partition;
mod plan;
mod progress;
mod report;
mod session;
mod sql;
mod sweep;
mod tally;

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use backend::{PartitionBackend, PartitionConnection};
pub use control::Control;
pub use error::PartitionError;
pub use key::{Key, KeyValue};
pub use options::{Cover, Failures, Pause};
pub use partition::Partition;
pub use progress::Progress;
pub use report::{FailedRow, Outcome, Report};
