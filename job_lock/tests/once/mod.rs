//! What is there once for all databases.

mod seam; // what a database needs stands in that database's own file

#[allow(dead_code)] // Without a database there is no suite.
pub(crate) mod warnings; // what was logged
