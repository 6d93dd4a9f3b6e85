//! `session.extend`: the deadline is put off. It is an absolute time, and never comes nearer.

use crate::fleet::signed;
use crate::{Control, ControlError, Result, now_ms, timestamp};
use cofferdam_api::SessionExtend;
use cofferdam_core::{InvalidValue, parse_timestamp};
use cofferdam_policy::Permit;
use cofferdam_store::SessionRecord;
use serde_json::json;

impl Control {
    pub async fn extend_session(
        &self,
        permit: &Permit,
        id: &str,
        request: &SessionExtend,
    ) -> Result<SessionRecord> {
        let now = now_ms();
        let wanted = match (request.ttl_seconds, &request.expires_at) {
            (Some(0), None) => {
                return Err(InvalidValue::new("ttl_seconds", "0", "it must be more than 0").into());
            }
            (Some(seconds), None) => now.saturating_add(signed(seconds.saturating_mul(1000))),
            (None, Some(text)) => parse_timestamp("expires_at", text)?,
            (None, None) => {
                return Err(InvalidValue::new("ttl_seconds", "", "give ttl_seconds or expires_at").into());
            }
            (Some(_), Some(_)) => {
                let fix = "give either ttl_seconds or expires_at";
                return Err(InvalidValue::new("expires_at", "", fix).into());
            }
        };
        let most = now.saturating_add(self.parts.settings.sessions.maximum_ttl.as_millis() as i64);
        if wanted > most {
            let (field, maximum) = match request.ttl_seconds {
                Some(_) => ("ttl_seconds", self.parts.settings.sessions.maximum_ttl.as_secs().to_string()),
                None => ("expires_at", timestamp(most)),
            };
            let value = request.ttl_seconds.map_or_else(|| timestamp(wanted), |seconds| seconds.to_string());
            return Err(ControlError::AboveMaximum { field, value, maximum });
        }
        let event = self.event(permit, "session.extended", id, json!({"expires_at": timestamp(wanted)}));
        let tenant = permit.tenant().to_owned();
        Ok(self.parts.store.extend_session(tenant, id.to_owned(), wanted, event).await?)
    }
}
