use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;

/// The stylesheet and the script, compiled in.
pub(crate) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let file = |content_type: &'static str, content: &'static str| {
        get(async move || ([(CONTENT_TYPE, content_type)], content))
    };
    Router::new()
        .route(
            "/style.css",
            file("text/css; charset=utf-8", include_str!("../assets/style.css")),
        )
        .route(
            "/poll.js",
            file(
                "text/javascript; charset=utf-8",
                include_str!("../assets/poll.js"),
            ),
        )
}
