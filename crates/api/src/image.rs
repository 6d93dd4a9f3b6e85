//! Images on the wire: names and digests. Their bytes are in the image store of whoever runs them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `POST /v1/images`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "python-tools:1", "profiles": ["python-tools"]}))]
pub struct ImageRequest {
    /// What it is called: `NAME` or `NAME:TAG`. An owner has one image of a name.
    #[schema(min_length = 1, max_length = 384, example = "python-tools:1")]
    pub name: String,
    /// Which image of the server's store it is; the one that has that name there, unless given.
    #[serde(default)]
    #[schema(pattern = "^sha256:[0-9a-f]{64}$")]
    pub digest: Option<String>,
    /// The named sets of tools that it has. The contract of each is tried before the image is registered.
    #[schema(min_items = 1, max_items = 16, schema_with = words, example = json!(["python-tools"]))]
    pub profiles: Vec<String>,
    /// What it can do besides what its profiles say.
    #[serde(default)]
    #[schema(max_items = 64, schema_with = more_words, example = json!(["numpy"]))]
    pub capabilities: Vec<String>,
    #[serde(default)]
    pub visibility: ImageVisibility,
    /// Registers it although credentials are found in it. That is noted in the audit.
    #[serde(default)]
    #[schema(example = false)]
    pub allow_credentials: bool,
}

fn list(least: usize, most: usize) -> utoipa::openapi::schema::Array {
    use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Type};
    let word = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[a-z0-9-]{1,64}$"));
    ArrayBuilder::new().items(word).min_items(Some(least)).max_items(Some(most)).build()
}

fn words() -> utoipa::openapi::schema::Array {
    list(1, 16)
}

fn more_words() -> utoipa::openapi::schema::Array {
    list(0, 64)
}

/// Who sees an image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImageVisibility {
    /// The tenant that registered it.
    #[default]
    Tenant,
    /// All tenants. Only an operator registers such an image, and takes it back.
    Global,
}

/// An image that was registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Image {
    #[schema(example = "img-aaaaaaaaaaaaaaaa")]
    pub id: String,
    #[schema(example = "python-tools:1")]
    pub name: String,
    #[schema(example = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")]
    pub digest: String,
    #[schema(example = json!(["python-tools"]))]
    pub profiles: Vec<String>,
    #[schema(example = json!(["shell", "python"]))]
    pub capabilities: Vec<String>,
    pub visibility: ImageVisibility,
    /// Whether it was registered although credentials were found in it.
    pub has_credentials: bool,
    /// Who registered it; not said of one that all tenants see.
    pub created_by: Option<String>,
    #[schema(format = DateTime)]
    pub created_at: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImageList {
    pub images: Vec<Image>,
    /// For the next page; none at the end.
    pub next_cursor: Option<String>,
}

/// What a check of an image has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImageCheck {
    #[schema(example = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")]
    pub digest: String,
    /// Whether every row is `ok` and no credentials were found.
    pub passed: bool,
    /// The contract of each profile.
    pub profiles: Vec<CheckedProfile>,
    /// What looks like a credential; never the value itself.
    pub credentials: Vec<ImageFinding>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckedProfile {
    #[schema(example = "python-tools")]
    pub profile: String,
    pub passed: bool,
    pub checks: Vec<ImageCheckRow>,
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImageCheckRow {
    #[schema(example = "unzip")]
    pub name: String,
    pub state: ImageCheckState,
    /// Why it is not `ok`. It is the image's own word.
    #[schema(example = "sh: 1: unzip: not found")]
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImageCheckState {
    Ok,
    Missing,
    Failed,
}

/// Something that looks like a credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImageFinding {
    /// Where: a path, `environment`, `labels` or `history`.
    #[schema(example = "/root/.netrc")]
    pub place: String,
    /// The layer of a path, the lowest is 1.
    pub layer: Option<u64>,
    #[schema(example = "a password")]
    pub what: String,
}
