//! Paths, and what answers them.

use super::answers::Answers;
use super::app::{App, Serving};
use super::body::Unread;
use super::error::{ApiError, echo};
use super::health::Status;
use super::prompt::{Model, Prepared};
use super::request::{parse_chat, parse_completion};
use super::request_log::RequestLog;
use super::wire::{self, Envelope};
use super::{auth, body, collect, request_log, stream};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router, middleware};
use serde_json::json;
use std::sync::Arc;

type Shares = State<Arc<App>>;

/// Every path, with what stands before all of them.
pub(super) fn router(app: &Arc<App>) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/v1/models", get(models))
        .route("/v1/models/{*id}", get(model))
        .route("/v1/chat/completions", post(chat))
        .route("/v1/completions", post(completion))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(Arc::clone(app), auth::check))
        .layer(middleware::from_fn(body::read_to_the_end))
        .layer(middleware::from_fn(request_log::log))
        .with_state(Arc::clone(app))
}

/// 200 while requests are served, 503 before, after, and when the engine has failed.
async fn health(State(app): Shares) -> Response {
    let (status, load) = (app.health.status(), app.health.load());
    let body = json!({
        "status": status.name(),
        "running": load.running,
        "waiting": load.waiting,
        "kv_blocks": { "used": load.used_blocks, "cached": load.cached_blocks, "all": load.all_blocks },
    });
    let code = if status == Status::Ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Json(body)).into_response()
}

async fn models(State(app): Shares) -> Result<Response, ApiError> {
    let model = &app.serving()?.model;
    let data = [wire::model(&model.id, model.created, model.context)];
    Ok(Json(json!({ "object": "list", "data": data })).into_response())
}

async fn model(State(app): Shares, id: Result<Path<String>, PathRejection>) -> Result<Response, ApiError> {
    let model = &app.serving()?.model;
    // What is no UTF-8 is nobody's name.
    let Ok(Path(id)) = id else { return Err(ApiError::parameter("model", "the model's name is not UTF-8")) };
    model.check_name(&id)?;
    Ok(Json(wire::model(&model.id, model.created, model.context)).into_response())
}

async fn chat(
    State(app): Shares,
    Extension(log): Extension<Arc<RequestLog>>,
    Extension(unread): Extension<Unread>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    answer(&app, log, &unread, &headers, |model, body| model.chat(parse_chat(body)?)).await
}

async fn completion(
    State(app): Shares,
    Extension(log): Extension<Arc<RequestLog>>,
    Extension(unread): Extension<Unread>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    answer(&app, log, &unread, &headers, |model, body| model.completion(parse_completion(body)?)).await
}

/// From a body to a response. Whatever can be wrong with a request is found before a stream begins.
async fn answer(
    app: &App,
    log: Arc<RequestLog>,
    unread: &Unread,
    headers: &HeaderMap,
    prepare: fn(&Model, &[u8]) -> Result<Prepared, ApiError>,
) -> Result<Response, ApiError> {
    let Serving { model, engine } = app.serving()?;
    let body = body::read(headers, unread, app).await?;
    let of_task = Arc::clone(model);
    let task = tokio::task::spawn_blocking(move || prepare(&of_task, body.bytes()));
    let prepared = task.await.map_err(|_| ApiError::internal("the request could not be read"))??;

    let source = prepared.source();
    let Prepared { dialect, requests, n, stop, stream, echoes } = prepared;
    let choices = requests.len();
    let answers = Answers::new(model.texts().tokenizer(), &stop, choices, n)?;
    let envelope = Envelope::new(dialect, &model.id, &model.fingerprint);
    let job = engine.submit(requests).await.map_err(|error| match error.status {
        400 => error.about(source),
        _ => error,
    })?;
    match stream {
        Some(options) => Ok(stream::respond(job, answers, envelope, &echoes, choices, options, log)),
        None => collect::respond(job, answers, &envelope, echoes, choices, &log).await,
    }
}

async fn unknown_path(method: Method, uri: Uri) -> ApiError {
    let message = format!("there is no {} {}", echo(method.as_str()).trim_matches('"'), echo(uri.path()));
    ApiError::refused(StatusCode::NOT_FOUND, "unknown_url", message)
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    let method = echo(method.as_str());
    let message = format!("{} does not take {}", echo(uri.path()), method.trim_matches('"'));
    ApiError::refused(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}
