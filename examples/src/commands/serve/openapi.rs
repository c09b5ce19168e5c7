//! The OpenAPI description of the routes, with the limits of this service.

use serde_json::{Value, json};

/// The description with the default limits.
pub const DESCRIPTION: &str = include_str!("openapi.json");

/// The description with these limits.
pub fn with_limits(max_terms: usize, max_documents: usize) -> String {
    let mut description: Value =
        serde_json::from_str(DESCRIPTION).expect("a test parses the description");
    for path in ["/topics", "/topics/{id}"] {
        let parameters = description["paths"][path]["get"]["parameters"].as_array_mut();
        for parameter in parameters.into_iter().flatten().filter(|it| it["name"] == "terms") {
            parameter["schema"]["maximum"] = json!(max_terms);
            parameter["schema"]["default"] = json!(max_terms.min(super::routes::SOME));
        }
    }
    let schemas = &mut description["components"]["schemas"];
    let documents = |schema: &str| format!("/{schema}/properties/documents");
    for (schema, most) in [("InferRequest", max_documents), ("SimilarRequest", max_documents - 1)] {
        if let Some(documents) = schemas.pointer_mut(&documents(schema)) {
            documents["maxItems"] = json!(most);
        }
    }
    description.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_service() {
        let description: Value = serde_json::from_str(&with_limits(7, 20)).unwrap();
        for path in ["/topics", "/topics/{id}"] {
            let parameters = description["paths"][path]["get"]["parameters"].as_array().unwrap();
            let terms = parameters.iter().find(|it| it["name"] == "terms").unwrap();
            assert_eq!(
                (&terms["schema"]["maximum"], &terms["schema"]["default"]),
                (&json!(7), &json!(7))
            );
        }
        let most = |schema: &str| {
            &description["components"]["schemas"][schema]["properties"]["documents"]["maxItems"]
        };
        assert_eq!((most("InferRequest"), most("SimilarRequest")), (&json!(20), &json!(19)));
        // The defaults are those of the file.
        let usual: Value = serde_json::from_str(&with_limits(100, 1024)).unwrap();
        assert_eq!(usual, serde_json::from_str::<Value>(DESCRIPTION).unwrap());
    }
}
