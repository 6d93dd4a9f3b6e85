//! Containers whose maker is gone. Each carries a label that says who made it.

use crate::container::{LABEL_OWNER, LABEL_SANDBOX};
use crate::daemon::failed;
use bollard::Docker;
use bollard::query_parameters::{ListContainersOptions, RemoveContainerOptions};
use cofferdam_backend::Result;
use cofferdam_guest::maker::is_gone;
use std::collections::HashMap;

/// Removes what processes of this machine left behind; answers the names.
pub(crate) async fn remove(docker: &Docker) -> Result<Vec<String>> {
    let filters = HashMap::from([("label".to_owned(), vec![LABEL_SANDBOX.to_owned()])]);
    let options = ListContainersOptions { all: true, filters: Some(filters), ..Default::default() };
    let listed = docker.list_containers(Some(options)).await;
    let mut removed = Vec::new();
    for container in listed.map_err(|error| failed("listing containers", error))? {
        let owner = container.labels.as_ref().and_then(|labels| labels.get(LABEL_OWNER));
        let (Some(id), true) = (container.id, owner.is_some_and(|owner| is_gone(owner, false))) else {
            continue;
        };
        let options = RemoveContainerOptions { force: true, v: true, ..Default::default() };
        // Another one may be doing the same.
        if docker.remove_container(&id, Some(options)).await.is_ok() {
            removed.extend(container.names.unwrap_or_default().into_iter().next());
        }
    }
    Ok(removed)
}
