//! `step.receipt`: what is kept of a step that has ended, as a signed statement, as for a job. Whoever deletes the session
//! destroys the key of what is kept, and with it what a receipt could be made of.

use crate::receipts::{artifacts, inputs, stream, work};
use crate::terms::Terms;
use crate::{Control, ControlError, Result, timestamp};
use cofferdam_api::{JobRequest, SessionRequest, StepRequest};
use cofferdam_policy::Permit;
use cofferdam_proof::{Envelope, Image, Outputs, PolicyUsed, Receipt, StepOf};
use cofferdam_store::{SessionRecord, StepRecord, StoreError};
use serde_json::{Value, json};

impl Control {
    /// The receipt of a step that has ended.
    pub async fn get_step_receipt(&self, permit: &Permit, session: &str, id: &str) -> Result<Envelope> {
        let record = self.get_session(permit, session).await?;
        let step = self.get_step(permit, session, id).await?;
        if !step.state.is_final() {
            return Err(ControlError::WrongState { state: step.state });
        }
        // The step before the key: what a key signs has happened before the key was retired.
        let receipt = receipt(&record, &step)?;
        let keys = self.signing()?;
        self.note_read(permit, "receipt.read", id).await?;
        Ok(receipt.seal(&keys.current))
    }
}

/// What is kept with the result of a step for its receipt: what was so when it was taken in.
pub(super) fn with_terms(mut result: Value, terms: &Terms, worker: &str) -> Value {
    result["terms"] = serde_json::to_value(terms).unwrap_or_default();
    result["worker"] = worker.into();
    result
}

fn receipt(session: &SessionRecord, step: &StepRecord) -> Result<Receipt> {
    let unreadable =
        |what: &str| ControlError::from(StoreError::Unreadable(format!("the {what} of {}", step.id)));
    let request: StepRequest = serde_json::from_str(&step.spec).map_err(|_| unreadable("request"))?;
    let of_session: SessionRequest =
        serde_json::from_str(&session.spec).map_err(|_| unreadable("session"))?;
    let result: Value = match &step.result {
        Some(text) => serde_json::from_str(text).map_err(|_| unreadable("result"))?,
        None => Value::Null,
    };
    let terms: Terms = match result.get("terms") {
        Some(terms) => serde_json::from_value(terms.clone()).map_err(|_| unreadable("terms"))?,
        None => Terms::default(),
    };
    let of_sandbox = Terms::read(session.terms.as_deref()).ok_or_else(|| unreadable("session"))?;
    let (image, sha256) = of_sandbox.image();
    let image = Image { name: image.to_owned(), sha256 };
    let limits = of_sandbox.limits;
    let StepRequest { language, code, command, stdin, files, env, .. } = request;
    let request = JobRequest { language, code, command, stdin, files, env, ..JobRequest::default() };
    Ok(Receipt {
        job_id: session.id.clone(),
        step: Some(StepOf { id: step.id.clone(), number: step.number, context: step.context.clone() }),
        tenant: session.tenant.clone(),
        task_id: session.task_id.clone(),
        agent: session.agent.clone(),
        work: work(&request),
        inputs: inputs(&request, &terms).ok_or_else(|| unreadable("files"))?,
        image,
        policy: PolicyUsed { sha256: terms.policy_sha256 },
        network_policy: of_session.network_policy.map(Value::from),
        limits,
        outputs: Outputs { stdout: stream(&result, "stdout"), stderr: stream(&result, "stderr") },
        artifacts: artifacts(&result),
        // Of a sandbox, which has many steps.
        isolation: Value::Null,
        state: step.state.as_str().to_owned(),
        outcome: match &result["outcome"] {
            Value::Null => json!({"kind": step.state}),
            outcome => outcome.clone(),
        },
        limits_hit: result["limits_hit"].clone(),
        resource_usage: Value::Null,
        duration_ms: result["duration_ms"].as_u64(),
        worker: result["worker"].as_str().map(str::to_owned),
        sandbox_id: None,
        created_at: timestamp(step.created_at_ms),
        started_at: step.started_at_ms.map(timestamp),
        finished_at: timestamp(step.transition_at_ms),
    })
}
