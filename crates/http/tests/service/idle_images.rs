//! Images that only pretend: each is there, and passes every check that is asked for.

use async_trait::async_trait;
use cofferdam_api::{CheckedProfile, ImageCheck};
use cofferdam_control::{ImageFailure, ImageWorker, InspectedImage};

pub(crate) struct IdleImages;

#[async_trait]
impl ImageWorker for IdleImages {
    async fn inspect(
        &self,
        name: &str,
        digest: Option<&str>,
        profiles: &[String],
    ) -> Result<InspectedImage, ImageFailure> {
        let digest = digest.map_or_else(|| format!("sha256:{}", "0".repeat(64)), str::to_owned);
        let passed =
            |profile: &String| CheckedProfile { profile: profile.clone(), passed: true, checks: Vec::new() };
        let profiles = profiles.iter().map(passed).collect();
        Ok(InspectedImage {
            name: name.to_owned(),
            capabilities: Vec::new(),
            check: ImageCheck { digest, passed: true, profiles, credentials: Vec::new() },
        })
    }
}
