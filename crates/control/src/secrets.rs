//! `secret.put`, `secret.list`, `secret.delete`, and how a job or a session gets some.
//!
//! A value comes in, is sealed under the master key, and leaves again only as a file in a sandbox's memory. No answer,
//! no note and no log has it.

use crate::once::Done;
use crate::{Control, ControlError, Result, SecretFile, timestamp};
use cofferdam_api::{JobRequest, Secret, SecretUse};
use cofferdam_core::{GuestPath, InvalidValue};
use cofferdam_policy::{Denial, Permit};
use cofferdam_store::{SecretRecord, StoreError};
use serde_json::json;
use zeroize::Zeroizing;

/// Where a sandbox has them.
const FOLDER: &str = "/run/secrets";

const MAX_NAME: usize = 64;

/// A key, a certificate with its chain.
const MAX_VALUE: usize = 64 << 10;

/// Of one tenant.
const MOST: i64 = 1000;

/// For one job or session.
const MOST_USED: usize = 32;

impl Control {
    /// With a name of the request, and not a hash of it: whoever can read the database could try values on that.
    pub async fn put_secret(
        &self,
        permit: &Permit,
        name: &str,
        value: String,
        named: Option<String>,
    ) -> Result<SecretRecord> {
        let named = match named {
            Some(key) => Some((key, self.artifacts()?.vault.master().mark(value.as_bytes()))),
            None => None,
        };
        let (control, by, wanted) = (self.clone(), permit.clone(), name.to_owned());
        let put = async move { control.put_now(&by, &wanted, value).await };
        let word = |made: &SecretRecord| made.name.clone();
        match self.once(permit, "PUT /v1/secrets/{name}", name, named, put, word).await? {
            Done::Now(secret) => Ok(secret),
            // As it is: it may have been changed since.
            Done::Before(name) => {
                let found = self.parts.store.secret(permit.tenant(), &name).await?;
                found.ok_or(ControlError::NotFound { what: "secret" })
            }
        }
    }

    async fn put_now(&self, permit: &Permit, name: &str, value: String) -> Result<SecretRecord> {
        let value = Zeroizing::new(value);
        check_name("name", name)?;
        if value.is_empty() || value.len() > MAX_VALUE {
            // Not with the value: this is shown.
            let fix = format!("it must have 1 to {MAX_VALUE} bytes");
            return Err(InvalidValue::new("value", "…", fix).into());
        }
        let tenant = permit.tenant().to_owned();
        let sealed = self.artifacts()?.vault.master().seal_secret(&value, &about(&tenant, name))?;
        let event = self.event(permit, "secret.put", name, json!({}));
        let put = self.parts.store.put_secret(tenant, name.to_owned(), sealed, MOST, event).await;
        put.map_err(|error| match error {
            StoreError::OverQuota { limit, .. } => ControlError::Denied(Denial {
                rule: "secret_quota".to_owned(),
                why: format!("the tenant has {limit} secrets already"),
                change: "delete some".to_owned(),
            }),
            other => other.into(),
        })
    }

    /// Their names, and never their values.
    pub async fn list_secrets(&self, permit: &Permit, after: &str, limit: i64) -> Result<Vec<SecretRecord>> {
        Ok(self.parts.store.secrets(permit.tenant(), after, limit).await?)
    }

    pub async fn delete_secret(&self, permit: &Permit, name: &str, named: Option<String>) -> Result<()> {
        let named = named.map(|key| (key, String::new()));
        let (control, by, wanted) = (self.clone(), permit.clone(), name.to_owned());
        let delete = async move { control.delete_now(&by, &wanted).await };
        self.once(permit, "DELETE /v1/secrets/{name}", name, named, delete, |()| "deleted".to_owned())
            .await?;
        Ok(())
    }

    async fn delete_now(&self, permit: &Permit, name: &str) -> Result<()> {
        check_name("name", name).map_err(|_| ControlError::NotFound { what: "secret" })?;
        let event = self.event(permit, "secret.deleted", name, json!({}));
        self.parts.store.delete_secret(permit.tenant().to_owned(), name.to_owned(), event).await?;
        // What it was leaves the database's own files, too.
        self.parts.store.forget_deleted().await?;
        Ok(())
    }

    /// The secrets that a job or a session asks for, opened. One that is not there is an error, or left out.
    pub(crate) async fn secret_files(
        &self,
        tenant: &str,
        wanted: Option<&Vec<SecretUse>>,
        must_all_be_there: bool,
    ) -> Result<Vec<SecretFile>> {
        let mut files = Vec::new();
        for SecretUse { name, path } in wanted.into_iter().flatten() {
            check_name("secrets", name)?;
            let path = place(name, path.as_deref())?;
            let sealed = match self.parts.store.sealed_secret(tenant, name).await? {
                Some(sealed) => sealed,
                None if !must_all_be_there => continue,
                None => {
                    let fix = "there is no such secret; see GET /v1/secrets";
                    return Err(InvalidValue::new("secrets", name.as_str(), fix).into());
                }
            };
            let value = self.artifacts()?.vault.master().open_secret(&sealed, &about(tenant, name))?;
            files.push(SecretFile { path, value });
        }
        Ok(files)
    }
}

/// Looks at what a job asks for, or a session as one.
pub(crate) fn check_job_secrets(request: &JobRequest) -> Result<()> {
    check_secrets(request.secrets.as_ref(), request.limits.disk_bytes)
}

/// Names of secrets, for whoever looks at the audit: which were attached.
pub(crate) fn names(secrets: Option<&Vec<SecretUse>>) -> Option<serde_json::Value> {
    let secrets = secrets.filter(|secrets| !secrets.is_empty())?;
    Some(secrets.iter().map(|secret| secret.name.as_str()).collect())
}

/// What nobody else looks at.
fn check_secrets(secrets: Option<&Vec<SecretUse>>, disk_bytes: Option<u64>) -> Result<()> {
    let Some(secrets) = secrets else { return Ok(()) };
    if secrets.len() > MOST_USED {
        let fix = format!("it may have at most {MOST_USED} entries");
        return Err(InvalidValue::new("secrets", secrets.len().to_string(), fix).into());
    }
    if !secrets.is_empty() && disk_bytes.is_some() {
        let why = "secrets are files in memory, and with limits.disk_bytes files are on disk";
        return Err(ControlError::Unsupported { field: "secrets", why: why.into() });
    }
    let mut seen = std::collections::HashSet::new();
    for SecretUse { name, path } in secrets {
        check_name("secrets", name)?;
        if !seen.insert(place(name, path.as_deref())?.to_string()) {
            let fix = "two secrets cannot be the same file";
            return Err(InvalidValue::new("secrets", name.as_str(), fix).into());
        }
    }
    Ok(())
}

impl SecretFile {
    /// A secret that comes from elsewhere, for a path that was chosen there.
    pub fn new(path: &str, value: String) -> Result<Self> {
        let value = Zeroizing::new(value);
        Ok(Self { path: place(path, Some(path))?, value })
    }
}

/// Where a secret goes: below the folder of secrets, and nowhere else, so that nothing that keeps files keeps it.
fn place(name: &str, path: Option<&str>) -> Result<GuestPath> {
    let asked = path.unwrap_or(name);
    let whole = if asked.starts_with('/') { asked.to_owned() } else { format!("{FOLDER}/{asked}") };
    let parsed = GuestPath::parse("secrets", &whole)?;
    match parsed.as_str().strip_prefix(FOLDER).and_then(|rest| rest.strip_prefix('/')) {
        Some(rest) if !rest.is_empty() => Ok(parsed),
        _ => Err(InvalidValue::new("secrets", asked, "a secret's path lies in /run/secrets").into()),
    }
}

fn check_name(field: &'static str, name: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' || byte == b'.';
    let is_fine = (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(plain) && !name.starts_with('.');
    match is_fine {
        true => Ok(()),
        false => {
            let fix = "a secret's name is 1 to 64 letters, digits, -, _ and ., and does not begin with a dot";
            Err(InvalidValue::new(field, name, fix).into())
        }
    }
}

/// What a secret is sealed for.
pub(crate) fn about(tenant: &str, name: &str) -> Vec<u8> {
    format!("cofferdam secret 1\0{tenant}\0{name}").into_bytes()
}

pub fn secret_view(secret: SecretRecord) -> Secret {
    let SecretRecord { name, changed_by, created_at_ms, changed_at_ms } = secret;
    Secret { name, changed_by, created_at: timestamp(created_at_ms), changed_at: timestamp(changed_at_ms) }
}
