//! The HTTP server.

pub(crate) mod openapi;
pub(crate) mod routes;

/// The OpenAPI document of kforge's own interface.
pub fn openapi() -> serde_json::Value {
    let routes: Vec<&openapi::Route> = routes::ROUTES.iter().collect();
    openapi::document(&routes, routes::ERROR)
}
