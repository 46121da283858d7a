use super::{Db, WEB};
use crate::shared::customer::{Charge, buy, get, get_json, padlocks, status};
use crate::shared::process::Process;
use job_test::eventually;
use std::collections::BTreeMap;

const ORDERS: usize = 20;

fn card(number: usize) -> &'static str {
    match number % 7 {
        3 => "tok_declined",
        5 => "tok_stolen",
        _ => "tok_visa",
    }
}

#[test]
fn each_order_is_charged_once_though_a_worker_is_killed_between_charge_and_commit() {
    let db = Db::empty();
    let payments = Process::server(
        db.url(),
        &[
            "payment-service",
            "--listen",
            "127.0.0.1:0",
            "--seed",
            "17",
            "--min-ms",
            "5",
            "--max-ms",
            "100",
            "--error-rate",
            "0.1",
            "--hang-rate",
            "0.03",
            "--drop-rate",
            "0.15",
        ],
    );
    let charges = || get_json::<Vec<Charge>>(&format!("{}/charges", payments.url));
    let worker = |timeout| {
        let args = [
            "worker",
            "--payment-url",
            &payments.url,
            "--payment-timeout-ms",
            timeout,
            "--rescue-after-ms",
            "1500",
        ];
        Process::start(db.url(), &args)
    };

    // Worker and web make the tables at the same time. This worker waits for an answer as long as it lives: a charge whose
    // answer is lost leaves it between the charge and the commit, and there it is killed.
    let first = worker("600000");
    let web = Process::web(WEB, db.url());
    let orders: Vec<(String, &str)> = (0..ORDERS)
        .map(|number| (buy(&web.url, padlocks("2", "Ann", card(number))), card(number)))
        .collect();
    let lost = || charges().into_iter().find(|charge| charge.times_answered == 0);
    eventually("a card is charged and the answer lost", || lost().is_some());
    drop(first);
    let lost = lost().expect("a charge that nobody was told of");
    assert!(!status(&web.url, &lost.idempotency_key).is_final);

    let _second = worker("1000");
    eventually("every order is final", || {
        orders
            .iter()
            .all(|(reference, _)| status(&web.url, reference).is_final)
    });
    assert_eq!(status(&web.url, &lost.idempotency_key).state, "authorised");

    let mut charged: BTreeMap<String, i64> = charges()
        .into_iter()
        .map(|charge| (charge.idempotency_key, charge.cents))
        .collect();
    for (reference, card) in &orders {
        let (state, cents) = match *card {
            "tok_visa" => ("authorised", Some(2 * 1850)),
            "tok_declined" => ("declined", None),
            _ => ("failed", None),
        };
        assert_eq!(status(&web.url, reference).state, state);
        assert_eq!(charged.remove(reference), cents, "{reference} with {card}");
    }
    assert!(charged.is_empty(), "charges without an order: {charged:?}");
    assert_eq!(db.count("SELECT count(*) FROM orders"), ORDERS as i64);
    assert_eq!(db.count("SELECT count(*) FROM jobs_finished"), ORDERS as i64);
    db.assert_invariants();
}

#[test]
fn one_command_starts_everything_and_ends_it() {
    let db = Db::empty();
    let mut all = Process::server(db.url(), &[]);
    let reference = buy(&all.url, padlocks("1", "Ann", "tok_visa"));
    eventually("the order is paid", || {
        status(&all.url, &reference).state == "authorised"
    });
    let page = get(&format!("{}/orders/{reference}", all.url));
    assert!(page.html.contains("Thank you, Ann"), "{}", page.html);
    assert!(!page.html.contains("http-equiv=\"refresh\""), "it is final");

    assert!(all.terminate().success());
    assert_eq!(
        db.count("SELECT count(*) FROM workers"),
        0,
        "the worker has taken its leave"
    );
    db.assert_invariants();
}
