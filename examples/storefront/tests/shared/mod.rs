pub(crate) mod customer;
pub(crate) mod process;
