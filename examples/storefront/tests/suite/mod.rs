use super::{Db, WEB};

mod buying;
mod form;
