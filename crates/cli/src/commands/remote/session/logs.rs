//! `cofferdam session logs` and `receipt`: what steps have written, and what is said of one, from what is kept.

use super::super::failure::failure;
use super::super::{block_on, connect, print_json};
use super::follow::{Shower, line};
use crate::args::{SessionLogsArgs, SessionReceiptArgs};
use crate::exit::Failure;
use cofferdam_api::Step;
use cofferdam_client::Client;
use cofferdam_core::SessionState;
use std::process::ExitCode;
use std::time::Duration;

/// How often is looked for the next step.
const LOOK: Duration = Duration::from_millis(500);

pub(super) fn logs(args: &SessionLogsArgs) -> Result<ExitCode, Failure> {
    let client = connect(&args.remote)?;
    let shower = Shower::open()?;
    block_on(async {
        let mut logs = Logs { client: &client, args, shower };
        match &args.step {
            Some(step) => logs.one(&find(&client, &args.id, step).await?).await,
            None => logs.all().await,
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn receipt(args: &SessionReceiptArgs) -> Result<ExitCode, Failure> {
    let client = connect(&args.remote)?;
    let receipt = block_on(async {
        let step = find(&client, &args.id, &args.step).await?;
        client.step_receipt(&args.id, &step).await.map_err(failure)
    })?;
    print_json(&receipt)?;
    Ok(ExitCode::SUCCESS)
}

/// The id of a step that was named by that or by its number.
async fn find(client: &Client, session: &str, step: &str) -> Result<String, Failure> {
    let Ok(number) = step.parse::<i64>() else { return Ok(step.to_owned()) };
    let mut cursor = None;
    loop {
        let page = client.step_list(session, cursor.as_deref()).await.map_err(failure)?;
        if let Some(step) = page.steps.into_iter().find(|step| step.number == number) {
            return Ok(step.id);
        }
        cursor = Some(page.next_cursor.ok_or_else(|| {
            Failure::new(format!("the session {session} has no step {number}; see cofferdam session logs"))
        })?);
    }
}

struct Logs<'a> {
    client: &'a Client,
    args: &'a SessionLogsArgs,
    shower: Shower,
}

impl Logs<'_> {
    async fn one(&mut self, id: &str) -> Result<(), Failure> {
        let mut output = self.client.step_output(&self.args.id, id, self.args.after);
        if !self.args.follow {
            output = output.up_to_now();
        }
        while let Some(event) = output.next().await.map_err(failure)? {
            match self.args.remote.json {
                true => print_json(&line(id, &event)),
                false => self.shower.show(&event),
            }?;
        }
        self.shower.end()
    }

    /// Every step that there is, and with `-f` those that come, until the session has ended.
    async fn all(&mut self) -> Result<(), Failure> {
        let mut seen = 0;
        loop {
            // Asked first: a step that is not there after the end will not come.
            let session = self.client.session_get(&self.args.id).await.map_err(failure)?;
            let is_over = !self.args.follow || session.status.state == SessionState::Ended;
            for step in self.after(seen).await? {
                seen = step.number;
                self.one(&step.id).await?;
            }
            if is_over {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn after(&self, seen: i64) -> Result<Vec<Step>, Failure> {
        let (mut steps, mut cursor) = (Vec::new(), None);
        loop {
            let page = self.client.step_list(&self.args.id, cursor.as_deref()).await.map_err(failure)?;
            steps.extend(page.steps.into_iter().filter(|step| step.number > seen));
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(steps);
            }
        }
    }
}
