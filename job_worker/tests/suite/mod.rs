use super::{Conn, Db};

mod idle;
mod stage;
mod whole_way;
