//! HTTP routes. `openapi.json` describes them for clients; a test compares the two.

use std::num::NonZeroU32;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Extension, MatchedPath, Path, Query, Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use lda_examples::connections::RequestContext;
use lda_examples::metrics::MEDIA_TYPE;
use serde::{Deserialize, Serialize};
use tracing::debug;

use crate::commands::serve::answer::{Answers, DocumentDistance, DocumentTopics};
use crate::commands::serve::app::App;
use crate::commands::serve::description::ModelDescription;
use crate::commands::serve::problem::Problem;
use crate::commands::serve::request::{InferRequest, SimilarRequest, parse};
use crate::commands::serve::topics::{Neighbour, Topic, hellinger, neighbours};
use crate::commands::serve::whole::Positive;
use crate::commands::serve::work::{Caller, Outcome, WorkerState};

/// Maximum number of topics per answer.
const MAX_TOPICS: usize = 1000;
/// Default number of terms per topic, and of neighbours.
pub(super) const SOME: usize = 10;

type Route = (&'static str, MethodRouter<Arc<App>>);

/// Path and handlers of the routes for operators.
fn health_routes() -> [Route; 3] {
    [("/healthz", get(health)), ("/readyz", get(readiness)), ("/metrics", get(metrics))]
}

/// Path and handlers of every route.
fn routes() -> impl Iterator<Item = Route> {
    let others: [Route; 6] = [
        ("/infer", post(infer)),
        ("/similar", get(similar_topics).post(similar_documents)),
        ("/topics", get(topics)),
        ("/topics/{id}", get(topic)),
        ("/model", get(model)),
        ("/openapi.json", get(openapi)),
    ];
    others.into_iter().chain(health_routes())
}

/// Router of all routes, with metrics of each request.
pub fn router(app: Arc<App>) -> Router {
    router_of(app, routes())
}

/// Router of the routes for operators.
pub fn health_router(app: Arc<App>) -> Router {
    router_of(app, health_routes())
}

fn router_of(app: Arc<App>, routes: impl IntoIterator<Item = Route>) -> Router {
    routes
        .into_iter()
        .fold(Router::new(), |router, (path, methods)| router.route(path, methods))
        .fallback(|| async { Problem::Route })
        .method_not_allowed_fallback(|| async { Problem::Method })
        .layer(middleware::from_fn_with_state(Arc::clone(&app), observe))
        .with_state(app)
}

async fn observe(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let matched = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let (method, route) = (request.method().clone(), matched.unwrap_or("none").to_owned());
    let in_flight = app.metrics.begin(route.clone());
    let response = next.run(request).await;
    let status = response.status();
    let seconds = in_flight.end(status).as_secs_f64();
    debug!(%method, route, status = status.as_u16(), seconds, "request");
    response
}

async fn infer(
    State(app): State<Arc<App>>,
    Extension(context): Extension<RequestContext>,
    body: Body,
) -> Result<Response, Problem> {
    let guard = app.receive(context, body).await?;
    let task = |body: &[u8], worker: &mut WorkerState<'_>, caller: &Caller<'_>| {
        let mut request: InferRequest = parse(body, worker.limits())?;
        let (documents, batch) = request.documents()?;
        let mut answers = Vec::with_capacity(documents.len());
        worker.infer(documents.into_iter(), caller, |inference, answer| {
            answers.push(DocumentTopics::new(
                inference,
                answer,
                request.top.map(|Positive(top)| top),
            ));
        })?;
        json(&match batch {
            true => Answers::Many { documents: answers },
            false => Answers::One(answers.remove(0)),
        })
    };
    app.ask(guard, task).await
}

/// Orders documents by the Hellinger distance of their topic shares from those of the query document.
async fn similar_documents(
    State(app): State<Arc<App>>,
    Extension(context): Extension<RequestContext>,
    body: Body,
) -> Result<Response, Problem> {
    #[derive(Serialize)]
    struct Similar {
        documents: Vec<DocumentDistance>,
    }

    let guard = app.receive(context, body).await?;
    let task = |body: &[u8], worker: &mut WorkerState<'_>, caller: &Caller<'_>| {
        let request: SimilarRequest = parse(body, worker.limits())?;
        let limit = request.limit;
        let documents = request.documents();
        let mut asked: Option<Vec<f64>> = None;
        let mut similar = Vec::with_capacity(documents.len() - 1);
        worker.infer(documents.into_iter(), caller, |inference, answer| {
            let shares = inference.distribution(answer);
            match &asked {
                None => asked = Some(shares),
                Some(asked) => similar.push(DocumentDistance {
                    document: similar.len(),
                    distance: hellinger(asked, &shares),
                }),
            }
        })?;
        similar.sort_by(|a, b| a.distance.total_cmp(&b.distance));
        similar.truncate(limit.map_or(usize::MAX, |Positive(limit)| limit.get() as usize));
        json(&Similar { documents: similar })
    };
    app.ask(guard, task).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SimilarQuery {
    topic: u32,
    limit: Option<NonZeroU32>,
}

/// Orders topics by the Hellinger distance of their word probabilities from those of one topic.
async fn similar_topics(
    State(app): State<Arc<App>>,
    Extension(context): Extension<RequestContext>,
    query: Result<Query<SimilarQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    #[derive(Serialize)]
    struct Similar {
        topic: usize,
        topics: Vec<Neighbour>,
    }

    let SimilarQuery { topic, limit } = checked(query)?;
    let topic = topic as usize;
    let guard = app.admit(context)?;
    check_topic(topic, &topic, guard.num_topics())?;
    let task = move |worker: &mut WorkerState<'_>, caller: &Caller<'_>| {
        let nearest = neighbours(worker.ready.model(), topic, &|| caller.is_gone());
        let mut topics = nearest.ok_or(Problem::Time)?;
        topics.truncate(limit.map_or(SOME, |limit| limit.get() as usize));
        json(&Similar { topic, topics })
    };
    app.look_up(guard, &headers, task).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TopicsQuery {
    terms: Option<u32>,
    offset: Option<u32>,
    limit: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TopicQuery {
    terms: Option<u32>,
}

async fn topics(
    State(app): State<Arc<App>>,
    Extension(context): Extension<RequestContext>,
    query: Result<Query<TopicsQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    #[derive(Serialize)]
    struct Topics<'a> {
        num_topics: usize,
        topics: Vec<Topic<'a>>,
    }

    let TopicsQuery { terms, offset, limit } = checked(query)?;
    let limit = limit.map_or(MAX_TOPICS, |limit| limit as usize);
    let offset = offset.unwrap_or(0) as usize;
    if limit > MAX_TOPICS {
        return Err(Problem::Query(format!("limit is {limit}: give at most {MAX_TOPICS}")));
    }
    let guard = app.admit(context)?;
    let terms = checked_terms(terms, guard.max_terms())?;
    let task = move |worker: &mut WorkerState<'_>, _: &Caller<'_>| {
        let ready = worker.ready;
        let num_topics = ready.model().num_topics();
        let some = (0..num_topics).skip(offset).take(limit);
        let topics = some.map(|topic| Topic::of(ready, topic, terms)).collect();
        json(&Topics { num_topics, topics })
    };
    app.look_up(guard, &headers, task).await
}

async fn topic(
    State(app): State<Arc<App>>,
    Extension(context): Extension<RequestContext>,
    id: Result<Path<String>, PathRejection>,
    query: Result<Query<TopicQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    // A path segment that is not UTF-8 is not a number either.
    let Path(id) = id.map_err(|_| Problem::Route)?;
    let TopicQuery { terms } = checked(query)?;
    let guard = app.admit(context)?;
    let topic = id.parse().unwrap_or(usize::MAX);
    check_topic(topic, &id, guard.num_topics())?;
    let terms = checked_terms(terms, guard.max_terms())?;
    let task = move |worker: &mut WorkerState<'_>, _: &Caller<'_>| {
        json(&Topic::of(worker.ready, topic, terms))
    };
    app.look_up(guard, &headers, task).await
}

async fn model(
    State(app): State<Arc<App>>,
    Extension(context): Extension<RequestContext>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let guard = app.admit(context)?;
    let task =
        |worker: &mut WorkerState<'_>, _: &Caller<'_>| json(&ModelDescription::of(worker.ready));
    app.look_up(guard, &headers, task).await
}

fn checked<T>(query: Result<Query<T>, QueryRejection>) -> Result<T, Problem> {
    query.map(|Query(query)| query).map_err(|rejection| Problem::Query(rejection.body_text()))
}

fn check_topic(topic: usize, asked: &dyn ToString, topics: usize) -> Result<(), Problem> {
    match topic < topics {
        true => Ok(()),
        false => Err(Problem::Topic { asked: asked.to_string(), last: topics - 1 }),
    }
}

/// The requested number of terms, checked against `limit`; the default if `None`.
fn checked_terms(terms: Option<u32>, limit: usize) -> Result<usize, Problem> {
    match terms.map(|terms| terms as usize) {
        None => Ok(limit.min(SOME)),
        Some(terms) if terms <= limit => Ok(terms),
        Some(terms) => Err(Problem::Query(format!("terms is {terms}: give at most {limit}"))),
    }
}

fn json(value: &impl Serialize) -> Outcome {
    Ok(serde_json::to_vec(value).expect("plain data serializes to JSON"))
}

/// Liveness: the process answers.
async fn health() -> &'static str {
    "ok\n"
}

/// Readiness: the service has a model and is not stopping.
async fn readiness(State(app): State<Arc<App>>) -> Result<&'static str, Problem> {
    app.readiness().map(|()| "ready\n")
}

async fn metrics(State(app): State<Arc<App>>) -> impl IntoResponse {
    let text = app.metrics.encode(app.queue.len(), app.bodies.held(), app.answers.held());
    ([(header::CONTENT_TYPE, MEDIA_TYPE)], text)
}

async fn openapi(State(app): State<Arc<App>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], app.description.clone())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::commands::serve::openapi::DESCRIPTION;

    #[test]
    fn the_description_has_exactly_the_routes() {
        let description: Value = serde_json::from_str(DESCRIPTION).unwrap();
        let described = description["paths"].as_object().unwrap().keys().map(String::as_str);
        let served = routes().map(|(path, _)| path);
        assert_eq!(described.collect::<BTreeSet<_>>(), served.collect::<BTreeSet<_>>());
        assert_eq!(description["info"]["version"], env!("CARGO_PKG_VERSION"));
    }
}
