use crate::form::{OrderForm, PRODUCTS, Problem, Product};
use crate::progress::Report;
use askama::Template;

#[derive(Template)]
#[template(path = "order_form.html")]
pub(crate) struct FormPage {
    form: OrderForm,
    problems: Vec<Problem>,
    products: &'static [Product],
}

impl FormPage {
    /// The form with what was typed. A token that cannot be ours is replaced.
    pub(crate) fn new(form: OrderForm, problems: Vec<Problem>) -> Self {
        let form = match crate::random::is_token(&form.form_token) {
            true => form,
            false => form.with_new_token(),
        };
        FormPage {
            form,
            problems,
            products: &PRODUCTS,
        }
    }

    fn problem(&self, field: &str) -> Option<&'static str> {
        let problem = self.problems.iter().find(|problem| problem.field == field)?;
        Some(problem.message)
    }
}

#[derive(Template)]
#[template(path = "order.html")]
pub(crate) struct OrderPage<'a> {
    pub(crate) reference: &'a str,
    pub(crate) product: &'a str,
    pub(crate) quantity: i32,
    pub(crate) total_cents: i64,
    pub(crate) name: &'a str,
    pub(crate) report: Report,
}

#[derive(Template)]
#[template(path = "not_found.html")]
pub(crate) struct NotFoundPage;

#[derive(Template)]
#[template(path = "error.html")]
pub(crate) struct ErrorPage;

/// For the templates.
fn dollars(cents: &i64) -> String {
    format!("${}.{:02}", cents / 100, cents % 100)
}
