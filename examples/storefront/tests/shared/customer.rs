use serde::Deserialize;
use serde::de::DeserializeOwned;
use ureq::ResponseExt as _;
use ureq::http::Response;

/// What a browser shows, redirects followed.
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) path: String,
    pub(crate) html: String,
}

/// What `/orders/{reference}/status` says.
#[derive(Debug, Deserialize)]
pub(crate) struct Status {
    pub(crate) state: String,
    pub(crate) is_final: bool,
    pub(crate) message: String,
}

/// A row of the payment service's `/charges`.
#[derive(Debug, Deserialize)]
pub(crate) struct Charge {
    pub(crate) idempotency_key: String,
    pub(crate) cents: i64,
    pub(crate) times_answered: u32,
}

fn agent() -> ureq::Agent {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .build()
        .into()
}

fn page(mut response: Response<ureq::Body>) -> Page {
    Page {
        status: response.status().as_u16(),
        path: response.get_uri().path().to_owned(),
        html: response.body_mut().read_to_string().expect("text"),
    }
}

pub(crate) fn get(url: &str) -> Page {
    page(agent().get(url).call().expect("an answer"))
}

pub(crate) fn get_json<T: DeserializeOwned>(url: &str) -> T {
    serde_json::from_str(&get(url).html).expect("JSON")
}

/// Fills in the form; the token is that of a form that was opened before.
pub(crate) fn send(shop: &str, token: &str, fields: [(&str, &str); 4]) -> Page {
    let form = [("form_token", token)].into_iter().chain(fields);
    page(
        agent()
            .post(format!("{shop}/orders"))
            .send_form(form)
            .expect("an answer"),
    )
}

/// Opens the form, and gives its hidden token.
pub(crate) fn open_form(shop: &str) -> String {
    token_in(&get(&format!("{shop}/")))
}

pub(crate) fn token_in(page: &Page) -> String {
    let (_, rest) = page
        .html
        .split_once("name=\"form_token\" value=\"")
        .expect("a token");
    rest[..32].to_owned()
}

pub(crate) fn padlocks<'a>(quantity: &'a str, name: &'a str, card: &'a str) -> [(&'a str, &'a str); 4] {
    [
        ("product", "padlock"),
        ("quantity", quantity),
        ("name", name),
        ("card_token", card),
    ]
}

/// Buys with a new form, and gives the order's reference.
pub(crate) fn buy(shop: &str, fields: [(&str, &str); 4]) -> String {
    let page = send(shop, &open_form(shop), fields);
    assert_eq!(page.status, 200, "{}", page.html);
    page.path
        .strip_prefix("/orders/")
        .expect("an order's page")
        .to_owned()
}

pub(crate) fn status(shop: &str, reference: &str) -> Status {
    get_json(&format!("{shop}/orders/{reference}/status"))
}
