//! Images that were registered: a name and a digest for a tenant, or for all of them. Their layers are elsewhere.

use crate::{AuditEvent, Millis, Page, Result, Store, StoreError, audit, limit, texts};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

/// Whose an image is that is for all tenants. No tenant has an id like it.
const EVERYBODYS: &str = "";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRecord {
    pub id: String,
    /// Whose it is; none for one that all tenants see.
    pub tenant: Option<String>,
    pub name: String,
    pub digest: String,
    /// Words without spaces, of small letters, digits and `-`.
    pub profiles: Vec<String>,
    pub capabilities: Vec<String>,
    /// It was registered although credentials were found in it.
    pub has_credentials: bool,
    pub created_by: String,
    pub created_at_ms: Millis,
}

/// Which images a list has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageFilter {
    /// Only those that were registered for this profile.
    pub profile: Option<String>,
    /// Only those after this one, in the order of the list.
    pub before: Option<Page>,
}

const COLUMNS: &str =
    "id, owner, name, digest, profiles, capabilities, has_credentials, created_by, created_at_ms";

fn record(row: &AnyRow) -> Result<ImageRecord> {
    let words = |at: usize| -> Result<Vec<String>> {
        let text: String = row.try_get(at)?;
        Ok(text.split_whitespace().map(str::to_owned).collect())
    };
    let owner: String = row.try_get(1)?;
    let has_credentials: i64 = row.try_get(6)?;
    Ok(ImageRecord {
        id: row.try_get(0)?,
        tenant: Some(owner).filter(|owner| owner != EVERYBODYS),
        name: row.try_get(2)?,
        digest: row.try_get(3)?,
        profiles: words(4)?,
        capabilities: words(5)?,
        has_credentials: has_credentials != 0,
        created_by: row.try_get(7)?,
        created_at_ms: row.try_get(8)?,
    })
}

/// As the column has them.
fn column(words: &[String]) -> String {
    words.iter().fold(" ".to_owned(), |text, word| text + word + " ")
}

/// What finds a profile in the column; none where the text is no profile's name, which could mean something there.
fn pattern(profile: &str) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_word = !profile.is_empty() && profile.bytes().all(plain);
    is_word.then(|| format!("% {profile} %"))
}

impl Store {
    /// Registers an image, if its owner has none of that name, and at most `most` of one owner's. The event goes into
    /// the chain of `by`.
    pub async fn create_image(
        &self,
        image: ImageRecord,
        most: i64,
        by: String,
        event: AuditEvent,
    ) -> Result<()> {
        texts::check([("the name", image.name.as_str()), ("the digest", &image.digest), ("who", &by)])?;
        texts::check(image.profiles.iter().chain(&image.capabilities).map(|word| ("a word", word.as_str())))?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(Create { image, most, by, event }).await
    }

    /// An image that a tenant sees: its own, or everybody's.
    pub async fn image(&self, tenant: &str, id: &str) -> Result<Option<ImageRecord>> {
        let text = format!("SELECT {COLUMNS} FROM images WHERE id = $1 AND owner IN ($2, $3)");
        let query = sqlx::query(sqlx::AssertSqlSafe(text)).bind(id).bind(tenant).bind(EVERYBODYS);
        self.engine.fetch_optional(query).await?.as_ref().map(record).transpose()
    }

    /// The images that a tenant sees, the newest first.
    pub async fn images(&self, tenant: &str, filter: &ImageFilter, limit: i64) -> Result<Vec<ImageRecord>> {
        limit::check(limit)?;
        let page = filter.before.clone().unwrap_or(Page { created_at_ms: i64::MAX, id: String::new() });
        let wanted = match &filter.profile {
            None => "%".to_owned(),
            Some(profile) => match pattern(profile) {
                Some(pattern) => pattern,
                None => return Ok(Vec::new()),
            },
        };
        let text = format!(
            "SELECT {COLUMNS} FROM images WHERE owner IN ($1, $2) AND profiles LIKE $3 \
             AND (created_at_ms, id) < ($4, $5) ORDER BY created_at_ms DESC, id DESC LIMIT $6"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(text)).bind(tenant).bind(EVERYBODYS).bind(wanted);
        let query = query.bind(page.created_at_ms).bind(page.id).bind(limit);
        self.engine.fetch_all(query).await?.iter().map(record).collect()
    }

    /// The digests of all images that anybody has registered, each once.
    pub async fn image_digests(&self) -> Result<Vec<String>> {
        let rows =
            self.engine.fetch_all(sqlx::query("SELECT DISTINCT digest FROM images ORDER BY digest")).await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    /// Takes an image out of the list of those that `owner` has, or that everybody has. The event goes into the chain of
    /// `by`.
    pub async fn delete_image(
        &self,
        owner: Option<String>,
        id: String,
        by: String,
        event: AuditEvent,
    ) -> Result<()> {
        texts::check([("the image's id", id.as_str()), ("who", &by)])?;
        texts::check_events(std::slice::from_ref(&event))?;
        self.writer.write(Delete { owner, id, by, event }).await
    }
}

struct Create {
    image: ImageRecord,
    most: i64,
    by: String,
    event: AuditEvent,
}

impl crate::writer::Act<()> for Create {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let Self { image, most, by, event } = self;
        let ImageRecord {
            id,
            tenant,
            name,
            digest,
            profiles,
            capabilities,
            has_credentials,
            created_by,
            created_at_ms,
        } = image;
        let owner = tenant.unwrap_or_else(|| EVERYBODYS.to_owned());
        let done = sqlx::query(
            "INSERT INTO images (id, owner, name, digest, profiles, capabilities, has_credentials, created_by, \
             created_at_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (owner, name) DO NOTHING",
        )
        .bind(id)
        .bind(owner.as_str())
        .bind(name)
        .bind(digest)
        .bind(column(&profiles))
        .bind(column(&capabilities))
        .bind(i64::from(has_credentials))
        .bind(created_by)
        .bind(created_at_ms)
        .execute(&mut *connection)
        .await?;
        if done.rows_affected() == 0 {
            return Err(StoreError::Taken { what: "image" });
        }
        let count = sqlx::query("SELECT COUNT(*) FROM images WHERE owner = $1").bind(owner);
        let count: i64 = count.fetch_one(&mut *connection).await?.try_get(0)?;
        if count > most {
            return Err(StoreError::OverQuota { used: count - 1, asked: 1, limit: most });
        }
        audit::append(connection, &by, &[event]).await
    }
}

struct Delete {
    owner: Option<String>,
    id: String,
    by: String,
    event: AuditEvent,
}

impl crate::writer::Act<()> for Delete {
    async fn act<'c>(self, connection: &'c mut AnyConnection) -> Result<()>
    where
        Self: 'c,
    {
        let done = sqlx::query("DELETE FROM images WHERE id = $1 AND owner = $2")
            .bind(self.id)
            .bind(self.owner.unwrap_or_else(|| EVERYBODYS.to_owned()))
            .execute(&mut *connection)
            .await?;
        if done.rows_affected() == 0 {
            return Err(StoreError::NotFound { what: "image" });
        }
        audit::append(connection, &self.by, &[self.event]).await
    }
}
