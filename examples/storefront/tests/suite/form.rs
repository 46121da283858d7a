use super::{Db, WEB};
use crate::shared::customer::{buy, get, open_form, padlocks, send, status, token_in};
use crate::shared::process::Process;
use std::sync::Barrier;

fn orders_and_jobs(db: &Db) -> (i64, i64) {
    (
        db.count("SELECT count(*) FROM orders"),
        db.count("SELECT count(*) FROM jobs"),
    )
}

#[test]
fn what_is_wrong_is_said_and_what_was_typed_is_kept() {
    let db = Db::empty();
    let web = Process::web(WEB, db.url());
    let token = open_form(&web.url);
    let page = send(&web.url, &token, padlocks("a dozen", "Ann", "4242"));
    assert_eq!(page.status, 422);
    for text in [
        "Enter a whole number from 1 to 99.",
        "Enter a card token",
        "value=\"a dozen\"",
        "value=\"Ann\"",
        "value=\"4242\"",
    ] {
        assert!(page.html.contains(text), "no {text} in {}", page.html);
    }
    assert_eq!(
        token_in(&page),
        token,
        "the corrected form is still the same form"
    );
    for quantity in ["0", "100", "-1", "1.5", "", "99999999999"] {
        assert_eq!(
            send(&web.url, &token, padlocks(quantity, "Ann", "tok_visa")).status,
            422
        );
    }
    for name in ["", " \t ", "A\0B", &"x".repeat(101)] {
        assert_eq!(
            send(&web.url, &token, padlocks("1", name, "tok_visa")).status,
            422
        );
    }
    let unknown = [
        ("product", "anchor"),
        ("quantity", "1"),
        ("name", "Ann"),
        ("card_token", "tok_visa"),
    ];
    assert_eq!(send(&web.url, &token, unknown).status, 422);
    assert_eq!(
        send(&web.url, "stale", padlocks("1", "Ann", "tok_visa")).status,
        422
    );
    assert_eq!(orders_and_jobs(&db), (0, 0));
}

#[test]
fn the_same_form_makes_one_order_however_often_it_arrives() {
    let db = Db::empty();
    let web = Process::web(WEB, db.url());
    let token = open_form(&web.url);
    let barrier = Barrier::new(4);
    let click = || {
        barrier.wait();
        send(&web.url, &token, padlocks("1", "Ann", "tok_visa")).path
    };
    let paths: Vec<String> = std::thread::scope(|scope| {
        let clicks: Vec<_> = (0..4).map(|_| scope.spawn(click)).collect();
        clicks
            .into_iter()
            .map(|click| click.join().expect("an answer"))
            .collect()
    });
    assert!(paths[0].starts_with("/orders/"));
    assert!(paths.iter().all(|path| *path == paths[0]), "{paths:?}");
    assert_eq!(orders_and_jobs(&db), (1, 1));

    // Back, and something else in the same form: not lost without a word, and not taken twice.
    let changed = send(&web.url, &token, padlocks("2", "Ann", "tok_visa"));
    assert_eq!(changed.status, 409);
    assert_eq!(orders_and_jobs(&db), (1, 1));
    let again = send(&web.url, &token_in(&changed), padlocks("2", "Ann", "tok_visa"));
    assert_ne!(again.path, paths[0]);
    assert_eq!(orders_and_jobs(&db), (2, 2));
    db.assert_invariants();
}

#[test]
fn an_order_can_be_watched_with_and_without_a_script() {
    let db = Db::empty();
    let web = Process::web(WEB, db.url());
    let reference = buy(&web.url, padlocks("1", "Ann", "tok_visa"));
    let status = status(&web.url, &reference);
    assert_eq!((status.state.as_str(), status.is_final), ("waiting", false));
    let page = get(&format!("{}/orders/{reference}", web.url));
    assert!(page.html.contains(&status.message), "{}", page.html);
    assert!(page.html.contains("<noscript><meta http-equiv=\"refresh\""));
    assert!(page.html.contains("src=\"/poll.js\""));
}

#[test]
fn an_unknown_order_is_not_found() {
    let db = Db::empty();
    let web = Process::web(WEB, db.url());
    buy(&web.url, padlocks("1", "Ann", "tok_visa"));
    for path in ["/orders/1", "/orders/1/status", "/orders/%27%00", "/elsewhere"] {
        assert_eq!(get(&format!("{}{path}", web.url)).status, 404, "{path}");
    }
}

#[test]
fn what_was_typed_is_escaped() {
    let db = Db::empty();
    let web = Process::web(WEB, db.url());
    let name = "\"><script>alert('Ann')</script>";
    let refused = send(&web.url, &open_form(&web.url), padlocks("0", name, "tok_visa"));
    let reference = buy(&web.url, padlocks("1", name, "tok_visa"));
    let order = get(&format!("{}/orders/{reference}", web.url));
    for page in [refused, order] {
        assert!(!page.html.contains("<script>alert"), "{}", page.html);
        assert!(page.html.contains("&#60;script&#62;alert"), "{}", page.html);
    }
}
