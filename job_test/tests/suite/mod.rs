use super::Db;

mod databases; // one for each test, gone after it
mod invariants; // each break of one is found
