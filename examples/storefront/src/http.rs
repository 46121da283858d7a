use anyhow::Context as _;
use askama::Template;
use axum::Router;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Serves until SIGTERM or SIGINT, and lets the requests that are under way end. The address goes to standard output
/// as soon as requests are taken, so that who asked for a free port learns which.
pub(crate) fn serve(what: &str, address: SocketAddr, router: Router) -> anyhow::Result<()> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("{what} cannot listen on {address}: choose another with --listen"))?;
        println!("{what}: http://{}", listener.local_addr()?);
        axum::serve(listener, router)
            .with_graceful_shutdown(async move {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            })
            .await?;
        Ok(())
    })
}

pub(crate) fn page(status: StatusCode, template: &impl Template) -> Result<Response, PageError> {
    Ok((status, Html(template.render()?)).into_response())
}

/// Pages are somebody's own, and go out of date: no cache keeps them. A page loads nothing from elsewhere.
pub(crate) async fn no_store(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'self'"),
    );
    response
}

/// Any error becomes a page that says that the same form may be sent again; the reason goes to the log.
#[derive(Debug)]
pub(crate) struct PageError(anyhow::Error);

impl<E: Into<anyhow::Error>> From<E> for PageError {
    fn from(error: E) -> Self {
        PageError(error.into())
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        log::error!("{:#}", self.0);
        let html = crate::pages::ErrorPage.render().unwrap_or_default();
        (StatusCode::INTERNAL_SERVER_ERROR, Html(html)).into_response()
    }
}
