use super::Db;

mod buying;
mod form;
