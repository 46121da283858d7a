//! For tests of connections of diesel_async: a runtime, connections and pools, and futures that are dropped midway.

use crate::{Postgres, TestDb};
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, bb8, deadpool};
use diesel_async::{AsyncConnection, AsyncPgConnection};
use std::pin::pin;
use std::task::Poll;

/// Waits for a future, on this thread and in a runtime of its own.
///
/// # Panics
/// Where there can be no runtime.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(future)
}

/// When a future is dropped that was polled for the last time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// At once.
    AfterThePoll,
    /// When it would have been polled again: what it waits for is there.
    BeforeTheNext,
}

/// Polls a future so many times and drops it; gives its value where it had one by then.
pub async fn drop_after<T>(polls: usize, moment: Moment, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut polled = 0;
    std::future::poll_fn(|context| {
        if polled == polls {
            return Poll::Ready(None);
        }
        polled += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending if polled == polls && moment == Moment::AfterThePoll => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

impl TestDb<Postgres> {
    /// A connection of diesel_async, as an app would open it.
    ///
    /// # Panics
    /// When the server cannot be reached.
    pub async fn connect_async(&self) -> AsyncPgConnection {
        AsyncPgConnection::establish(self.url())
            .await
            .expect("a connection")
    }

    /// A pool of `deadpool`.
    ///
    /// # Panics
    /// Never.
    pub fn deadpool(&self, size: usize) -> deadpool::Pool<AsyncPgConnection> {
        let manager = AsyncDieselConnectionManager::new(self.url());
        deadpool::Pool::builder(manager)
            .max_size(size)
            .build()
            .expect("a pool")
    }

    /// A pool of `bb8`.
    ///
    /// # Panics
    /// When the server cannot be reached.
    pub async fn bb8(&self, size: u32) -> bb8::Pool<AsyncPgConnection> {
        let manager = AsyncDieselConnectionManager::new(self.url());
        bb8::Pool::builder()
            .max_size(size)
            .build(manager)
            .await
            .expect("a pool")
    }
}
