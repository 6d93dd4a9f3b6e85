//! `image.register`, `image.list`, `image.get`, `image.check`, `image.unregister`: which images of the server's store a
//! tenant is told of, and how a job comes to one by a profile.
//!
//! Whoever registers an image does not bring it: it is in the store already, put there by an operator.

use crate::image_worker::{ImageFailure, InspectedImage};
use crate::once::{Done, Named};
use crate::{Control, ControlError, Result, ids, now_ms, timestamp};
use cofferdam_api::{Image, ImageCheck, ImageCheckState, ImageRequest, ImageVisibility, JobRequest};
use cofferdam_core::InvalidValue;
use cofferdam_policy::{Action, Denial, Permit};
use cofferdam_store::{ImageFilter, ImageRecord, StoreError};
use serde_json::json;
use std::collections::BTreeSet;

/// Of one owner.
const MOST: i64 = 1000;

/// Each is tried, one after the other, while whoever asked waits.
const MOST_PROFILES: usize = 16;
const MOST_CAPABILITIES: usize = 64;
const MAX_WORD: usize = 64;

/// So many credentials are noted with where they are: an entry of the audit stays small.
const NOTED: usize = 10;

const ROUTE: &str = "POST /v1/images";

impl Control {
    /// Registers an image of the server's store, for the tenant or for all, if it passes what it is registered for.
    pub async fn register_image(
        &self,
        permit: &Permit,
        request: ImageRequest,
        named: Named,
    ) -> Result<ImageRecord> {
        let is_global = request.visibility == ImageVisibility::Global;
        if is_global {
            self.permit_also(permit, Action::ImagePublish).await?;
        }
        let (control, by) = (self.clone(), permit.clone());
        let register = async move { control.register_now(&by, request).await };
        let word = |made: &ImageRecord| made.id.clone();
        match self.once(permit, ROUTE, "", named, register, word).await? {
            Done::Now(image) => Ok(image),
            Done::Before(id) => self.get_image(permit, &id).await,
        }
    }

    async fn register_now(&self, permit: &Permit, request: ImageRequest) -> Result<ImageRecord> {
        let ImageRequest { name, digest, profiles, capabilities, visibility, allow_credentials } = request;
        let profiles = words("profiles", profiles, 1, MOST_PROFILES)?;
        let more = words("capabilities", capabilities, 0, MOST_CAPABILITIES)?;
        let found = self.inspect_image(&name, digest.as_deref(), &profiles).await?;
        let found = found.map_err(|failure| match failure {
            ImageFailure::NotThere => {
                let fix = "there is no such image in the server's store; an operator puts it there \
                           (cofferdam image import, pull or build-profile)";
                let (field, value) = digest.as_ref().map_or(("name", &name), |digest| ("digest", digest));
                InvalidValue::new(field, value.as_str(), fix).into()
            }
            other => unusable(other),
        })?;
        refuse(&found.check, allow_credentials)?;
        let InspectedImage { name, capabilities, check } = found;
        let capabilities: BTreeSet<String> = capabilities.into_iter().chain(more).collect();
        let has_credentials = !check.credentials.is_empty();
        let image = ImageRecord {
            id: ids::image()?,
            tenant: (visibility == ImageVisibility::Tenant).then(|| permit.tenant().to_owned()),
            name,
            digest: check.digest,
            profiles,
            capabilities: capabilities.into_iter().collect(),
            has_credentials,
            created_by: permit.actor().to_owned(),
            created_at_ms: now_ms(),
        };
        let mut details = noted(&image);
        if has_credentials {
            // Who has decided so, and about what.
            let first: Vec<_> = check.credentials.iter().take(NOTED).collect();
            details["credentials_allowed"] = json!({"count": check.credentials.len(), "first": first});
        }
        let event = self.event(permit, "image.registered", &image.id, details);
        let by = permit.tenant().to_owned();
        let turn = self.parts.pins.lock().await;
        self.pin_image(&image.digest).await?.map_err(unusable)?;
        let created = self.parts.store.create_image(image.clone(), MOST, by, event).await;
        drop(turn);
        if created.is_err() {
            self.pin_registered().await;
        }
        created.map_err(|error| match error {
            StoreError::OverQuota { limit, .. } => ControlError::Denied(Denial {
                rule: "image_quota".to_owned(),
                why: format!("there are {limit} images of that owner already"),
                change: "unregister some".to_owned(),
            }),
            other => other.into(),
        })?;
        Ok(image)
    }

    /// The images that the tenant sees, the newest first.
    pub async fn list_images(
        &self,
        permit: &Permit,
        filter: &ImageFilter,
        limit: i64,
    ) -> Result<Vec<ImageRecord>> {
        Ok(self.parts.store.images(permit.tenant(), filter, limit).await?)
    }

    pub async fn get_image(&self, permit: &Permit, id: &str) -> Result<ImageRecord> {
        let found = self.parts.store.image(permit.tenant(), id).await?;
        found.ok_or(ControlError::NotFound { what: "image" })
    }

    /// Tries the image again, for every profile that it was registered for. Nothing changes by it.
    pub async fn check_image(&self, permit: &Permit, id: &str) -> Result<ImageCheck> {
        let image = self.get_image(permit, id).await?;
        let checked = self.inspect_image(&image.name, Some(&image.digest), &image.profiles).await?;
        let check = checked.map_err(|failure| match failure {
            ImageFailure::NotThere => {
                let text = format!("the image {} is not in the server's store any more", image.digest);
                ControlError::Conflict { text }
            }
            other => unusable(other),
        })?;
        let check = check.check;
        let details = json!({"digest": check.digest, "passed": check.passed});
        let event = self.event(permit, "image.checked", id, details);
        self.parts.store.note(permit.tenant().to_owned(), event).await?;
        Ok(check)
    }

    /// Takes an image out of the list. Its layers stay in the store, and jobs that have it keep it.
    pub async fn unregister_image(&self, permit: &Permit, id: &str, named: Named) -> Result<()> {
        let (control, by, wanted) = (self.clone(), permit.clone(), id.to_owned());
        let unregister = async move { control.unregister_now(&by, &wanted).await };
        let route = "DELETE /v1/images/{id}";
        self.once(permit, route, id, named, unregister, |()| "unregistered".to_owned()).await?;
        Ok(())
    }

    async fn unregister_now(&self, permit: &Permit, id: &str) -> Result<()> {
        let image = self.get_image(permit, id).await?;
        if image.tenant.is_none() {
            self.permit_also(permit, Action::ImageWithdraw).await?;
        }
        let event = self.event(permit, "image.unregistered", id, noted(&image));
        let by = permit.tenant().to_owned();
        self.parts.store.delete_image(image.tenant, image.id, by, event).await?;
        self.pin_registered().await;
        Ok(())
    }

    /// Puts the newest image that the tenant sees and that has the profile into the place of the profile, by its digest:
    /// what the job runs on does not change any more.
    pub(crate) async fn settle_profile(&self, permit: &Permit, request: &mut JobRequest) -> Result<()> {
        let Some(profile) = request.profile.take() else { return Ok(()) };
        let filter = ImageFilter { profile: Some(profile.clone()), before: None };
        let newest = self.parts.store.images(permit.tenant(), &filter, 1).await?;
        let Some(ImageRecord { name, digest, .. }) = newest.into_iter().next() else {
            return Err(self.no_such_profile(permit.tenant(), &profile).await?);
        };
        request.image = Some(format!("{name}@{digest}"));
        Ok(())
    }

    async fn no_such_profile(&self, tenant: &str, profile: &str) -> Result<ControlError> {
        // As many as there may be, of the tenant and of all.
        let all = self.parts.store.images(tenant, &ImageFilter::default(), 2 * MOST).await?;
        let names: BTreeSet<String> = all.into_iter().flat_map(|image| image.profiles).collect();
        let fix = match names.is_empty() {
            true => "no image is registered for any profile: see POST /v1/images".to_owned(),
            false => {
                let names: Vec<_> = names.into_iter().collect();
                format!("no image is registered for it; there are {}", names.join(", "))
            }
        };
        Ok(InvalidValue::new("profile", profile, fix).into())
    }

    /// Asks for what a request needs besides the permit that it has.
    async fn permit_also(&self, permit: &Permit, action: Action) -> Result<Permit> {
        self.permit(permit.principal(), action, permit.tenant(), None).await
    }
}

fn unusable(failure: ImageFailure) -> ControlError {
    match failure {
        ImageFailure::Invalid(error) => error.into(),
        ImageFailure::NotThere => ControlError::NotFound { what: "image" },
        ImageFailure::Failed(why) => {
            tracing::error!(error = why, "an image could not be checked");
            ControlError::Unavailable("the image could not be checked".to_owned())
        }
    }
}

/// Words that can be kept, each once.
fn words(field: &'static str, words: Vec<String>, least: usize, most: usize) -> Result<Vec<String>> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_word = |word: &String| (1..=MAX_WORD).contains(&word.len()) && word.bytes().all(plain);
    if !(least..=most).contains(&words.len()) {
        let fix = format!("give {least} to {most}");
        return Err(InvalidValue::new(field, words.len().to_string(), fix).into());
    }
    if let Some((i, word)) = words.iter().enumerate().find(|(_, word)| !is_word(word)) {
        let fix = "it must be 1 to 64 small letters, digits and -";
        return Err(InvalidValue::new(&format!("{field}[{i}]"), word.as_str(), fix).into());
    }
    let mut seen = BTreeSet::new();
    Ok(words.into_iter().filter(|word| seen.insert(word.clone())).collect())
}

/// An image that fails what it is to be registered for, or that has credentials in it, is refused.
fn refuse(check: &ImageCheck, allow_credentials: bool) -> Result<()> {
    if let Some(failed) = check.profiles.iter().find(|profile| !profile.passed) {
        let rows = failed.checks.iter().filter(|row| row.state != ImageCheckState::Ok);
        let names: Vec<_> = rows.map(|row| row.name.as_str()).collect();
        let fix = format!("the image does not pass its check: {}; add what is missing", names.join(", "));
        let why = InvalidValue::new("profiles", failed.profile.as_str(), fix);
        return Err(ControlError::ImageRefused { why, check: Box::new(check.clone()) });
    }
    if let (Some(first), false) = (check.credentials.first(), allow_credentials) {
        let fix = format!(
            "{} credentials were found in it, the first is {} in {}; make it without them, or set allow_credentials, \
             which is noted",
            check.credentials.len(),
            first.what,
            first.place
        );
        let why = InvalidValue::new("allow_credentials", "false", fix);
        return Err(ControlError::ImageRefused { why, check: Box::new(check.clone()) });
    }
    Ok(())
}

fn noted(image: &ImageRecord) -> serde_json::Value {
    let ImageRecord { id: _, tenant, name, digest, profiles, .. } = image;
    json!({"name": name, "digest": digest, "profiles": profiles, "is_global": tenant.is_none()})
}

pub fn image_view(image: ImageRecord) -> Image {
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
    let (visibility, created_by) = match tenant {
        Some(_) => (ImageVisibility::Tenant, Some(created_by)),
        // Whose key it was is nobody else's business.
        None => (ImageVisibility::Global, None),
    };
    let created_at = timestamp(created_at_ms);
    Image { id, name, digest, profiles, capabilities, visibility, has_credentials, created_by, created_at }
}
