use crate::random;
use serde::Deserialize;

/// Something to buy.
#[derive(Debug)]
pub(crate) struct Product {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) cents: i64,
}

pub(crate) const PRODUCTS: [Product; 3] = [
    Product {
        id: "padlock",
        name: "Brass padlock",
        cents: 1_850,
    },
    Product {
        id: "towline",
        name: "Towing line, 50 m",
        cents: 7_400,
    },
    Product {
        id: "cap",
        name: "Pilot's cap",
        cents: 3_225,
    },
];

const MAX_QUANTITY: i32 = 99;
const MAX_NAME: usize = 100;

/// The order form as it was filled in: all text, kept to be shown again.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct OrderForm {
    /// Random, hidden in the form: the same form sent twice makes one order.
    pub(crate) form_token: String,
    pub(crate) product: String,
    pub(crate) quantity: String,
    pub(crate) name: String,
    pub(crate) card_token: String,
}

/// A form whose every field makes sense.
#[derive(Clone, Debug)]
pub(crate) struct Purchase {
    pub(crate) form_token: String,
    pub(crate) product: &'static Product,
    pub(crate) quantity: i32,
    pub(crate) name: String,
    pub(crate) card_token: String,
}

/// What is wrong with a field, or with the form if `field` is empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Problem {
    pub(crate) field: &'static str,
    pub(crate) message: &'static str,
}

impl Problem {
    pub(crate) const SENT_BEFORE: Problem = Problem {
        field: "",
        message: "This form was sent before, with other contents, and that order stands. \
                  To place this one too, send it again.",
    };
}

impl Purchase {
    pub(crate) fn total_cents(&self) -> i64 {
        self.product.cents * i64::from(self.quantity)
    }
}

impl OrderForm {
    pub(crate) fn empty() -> Self {
        OrderForm {
            product: PRODUCTS[0].id.into(),
            quantity: "1".into(),
            card_token: "tok_visa".into(),
            ..OrderForm::default()
        }
        .with_new_token()
    }

    pub(crate) fn with_new_token(self) -> Self {
        OrderForm {
            form_token: random::token(),
            ..self
        }
    }

    pub(crate) fn check(&self) -> Result<Purchase, Vec<Problem>> {
        let mut problems = Vec::new();
        let product = PRODUCTS.iter().find(|product| product.id == self.product);
        let quantity = self
            .quantity
            .trim()
            .parse()
            .ok()
            .filter(|number| (1..=MAX_QUANTITY).contains(number));
        let name = self.name.trim();
        let card_token = self.card_token.trim();
        let mut check = |holds: bool, field, message| {
            if !holds {
                problems.push(Problem { field, message });
            }
        };
        check(
            random::is_token(&self.form_token),
            "",
            "The form was out of date. Please send it again.",
        );
        check(product.is_some(), "product", "Choose a product from the list.");
        check(
            quantity.is_some(),
            "quantity",
            "Enter a whole number from 1 to 99.",
        );
        check(!name.is_empty(), "name", "Enter your name.");
        check(
            name.chars().count() <= MAX_NAME && !name.contains(char::is_control),
            "name",
            "Enter a name of at most 100 letters, on one line.",
        );
        check(
            is_card_token(card_token),
            "card_token",
            "Enter a card token, such as tok_visa: tok_, then small letters.",
        );
        match (product, quantity) {
            (Some(product), Some(quantity)) if problems.is_empty() => Ok(Purchase {
                form_token: self.form_token.clone(),
                product,
                quantity,
                name: name.into(),
                card_token: card_token.into(),
            }),
            _ => Err(problems),
        }
    }
}

fn is_card_token(text: &str) -> bool {
    text.strip_prefix("tok_").is_some_and(|rest| {
        (1..=40).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    })
}
