//! Who may do what. A decision is made from what the caller says of a request, by rules in Rego, and comes with
//! its reason. This crate does no I/O.
//!
//! A [`Permit`] can only come from here. Whatever acts takes one, so nothing acts that was not asked about.
//! Whatever goes wrong on the way (a rule that fails, an answer that makes no sense) is a denial.

use regorus::utils::limits::{ExecutionTimerConfig, LimitError, set_fallback_execution_timer_config};
use regorus::{CompiledPolicy, Engine, Value};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

/// Rules that have not decided by then deny. The built-in ones take less than a thousandth of it.
pub const DECISION_TIME: Duration = Duration::from_secs(1);

/// How many steps of an evaluation go by between two looks at the clock.
const STEPS_PER_LOOK: NonZeroU32 = NonZeroU32::new(256).expect("it is not 0");

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub tenant: String,
    /// As it is noted: which key, or what else it was.
    pub actor: String,
    pub agent: Option<String>,
    pub scopes: Vec<String>,
}

/// What is asked for. Each verb has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    JobCreate,
    JobGet,
    JobList,
    JobCancel,
    JobDelete,
    ArtifactCreate,
    ArtifactGet,
    ArtifactList,
    ArtifactLink,
    ArtifactDelete,
    ReceiptGet,
    AuditList,
    AuditHead,
    AuditExport,
    KeyCreate,
    KeyList,
    KeyDelete,
    EventList,
    MetricsRead,
    TenantCreate,
    TenantList,
    TenantGet,
    TenantUpdate,
    TenantDelete,
    WorkerList,
    SessionCreate,
    SessionGet,
    SessionList,
    SessionExtend,
    SessionDelete,
    StepCreate,
    StepGet,
    StepList,
    StepInterrupt,
    ContextRestart,
    FileRead,
    FileWrite,
    ProcessStart,
    ProcessGet,
    ProcessWrite,
    SessionPause,
    SessionResume,
    SessionFork,
    SnapshotCreate,
    SnapshotList,
    SnapshotDelete,
    SecretPut,
    SecretList,
    SecretDelete,
    SecretUse,
    ImageRegister,
    ImageList,
    ImageGet,
    ImageCheck,
    ImageUnregister,
    /// Registers an image that all tenants see.
    ImagePublish,
    /// Takes it back.
    ImageWithdraw,
}

impl Action {
    pub const ALL: [Self; 57] = [
        Self::JobCreate,
        Self::JobGet,
        Self::JobList,
        Self::JobCancel,
        Self::JobDelete,
        Self::ArtifactCreate,
        Self::ArtifactGet,
        Self::ArtifactList,
        Self::ArtifactLink,
        Self::ArtifactDelete,
        Self::ReceiptGet,
        Self::AuditList,
        Self::AuditHead,
        Self::AuditExport,
        Self::KeyCreate,
        Self::KeyList,
        Self::KeyDelete,
        Self::EventList,
        Self::MetricsRead,
        Self::TenantCreate,
        Self::TenantList,
        Self::TenantGet,
        Self::TenantUpdate,
        Self::TenantDelete,
        Self::WorkerList,
        Self::SessionCreate,
        Self::SessionGet,
        Self::SessionList,
        Self::SessionExtend,
        Self::SessionDelete,
        Self::StepCreate,
        Self::StepGet,
        Self::StepList,
        Self::StepInterrupt,
        Self::ContextRestart,
        Self::FileRead,
        Self::FileWrite,
        Self::ProcessStart,
        Self::ProcessGet,
        Self::ProcessWrite,
        Self::SessionPause,
        Self::SessionResume,
        Self::SessionFork,
        Self::SnapshotCreate,
        Self::SnapshotList,
        Self::SnapshotDelete,
        Self::SecretPut,
        Self::SecretList,
        Self::SecretDelete,
        Self::SecretUse,
        Self::ImageRegister,
        Self::ImageList,
        Self::ImageGet,
        Self::ImageCheck,
        Self::ImageUnregister,
        Self::ImagePublish,
        Self::ImageWithdraw,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::JobCreate => "job.create",
            Self::JobGet => "job.get",
            Self::JobList => "job.list",
            Self::JobCancel => "job.cancel",
            Self::JobDelete => "job.delete",
            Self::ArtifactCreate => "artifact.create",
            Self::ArtifactGet => "artifact.get",
            Self::ArtifactList => "artifact.list",
            Self::ArtifactLink => "artifact.link",
            Self::ArtifactDelete => "artifact.delete",
            Self::ReceiptGet => "receipt.get",
            Self::AuditList => "audit.list",
            Self::AuditHead => "audit.head",
            Self::AuditExport => "audit.export",
            Self::KeyCreate => "key.create",
            Self::KeyList => "key.list",
            Self::KeyDelete => "key.delete",
            Self::EventList => "event.list",
            Self::MetricsRead => "metrics.read",
            Self::TenantCreate => "tenant.create",
            Self::TenantList => "tenant.list",
            Self::TenantGet => "tenant.get",
            Self::TenantUpdate => "tenant.update",
            Self::TenantDelete => "tenant.delete",
            Self::WorkerList => "worker.list",
            Self::SessionCreate => "session.create",
            Self::SessionGet => "session.get",
            Self::SessionList => "session.list",
            Self::SessionExtend => "session.extend",
            Self::SessionDelete => "session.delete",
            Self::StepCreate => "step.create",
            Self::StepGet => "step.get",
            Self::StepList => "step.list",
            Self::StepInterrupt => "step.interrupt",
            Self::ContextRestart => "context.restart",
            Self::FileRead => "file.read",
            Self::FileWrite => "file.write",
            Self::ProcessStart => "process.start",
            Self::ProcessGet => "process.get",
            Self::ProcessWrite => "process.write",
            Self::SessionPause => "session.pause",
            Self::SessionResume => "session.resume",
            Self::SessionFork => "session.fork",
            Self::SnapshotCreate => "snapshot.create",
            Self::SnapshotList => "snapshot.list",
            Self::SnapshotDelete => "snapshot.delete",
            Self::SecretPut => "secret.put",
            Self::SecretList => "secret.list",
            Self::SecretDelete => "secret.delete",
            Self::SecretUse => "secret.use",
            Self::ImageRegister => "image.register",
            Self::ImageList => "image.list",
            Self::ImageGet => "image.get",
            Self::ImageCheck => "image.check",
            Self::ImageUnregister => "image.unregister",
            Self::ImagePublish => "image.publish",
            Self::ImageWithdraw => "image.withdraw",
        }
    }
}

/// Proof that a request was allowed. It says to whom, for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permit {
    principal: Principal,
    action: Action,
    tenant: String,
}

impl Permit {
    /// Whose the thing is; the principal's own tenant, unless an operator acts for another.
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    pub fn actor(&self) -> &str {
        &self.principal.actor
    }

    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    pub fn action(&self) -> Action {
        self.action
    }
}

/// Why a request was not allowed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Denial {
    pub rule: String,
    pub why: String,
    /// The smallest change that would allow it.
    pub change: String,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (rule {})", self.why, self.rule)
    }
}

impl std::error::Error for Denial {}

/// What a request says of itself that a decision depends on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts<'f> {
    /// For whom it says that it acts.
    pub agent: Option<&'f str>,
    /// The scopes that it would give to somebody.
    pub scopes: &'f [String],
}

/// Rules, ready to decide.
pub struct Policy {
    rules: CompiledPolicy,
    version: String,
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy").finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct Decision {
    allow: bool,
    denials: Vec<Denial>,
}

impl Policy {
    /// The rules that come with the program.
    pub fn builtin() -> Self {
        Self::parse(include_str!("builtin.rego")).expect("the built-in rules are valid, as a test shows")
    }

    /// Rules of one's own, in the place of those.
    pub fn parse(rules: &str) -> Result<Self, String> {
        // Compiled rules take it from here each time that they are evaluated.
        let timer = ExecutionTimerConfig { limit: DECISION_TIME, check_interval: STEPS_PER_LOOK };
        set_fallback_execution_timer_config(Some(timer));
        let digest = Sha256::digest(rules.as_bytes());
        let version = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut engine = Engine::new();
        engine.add_policy("policy.rego".to_owned(), rules.to_owned()).map_err(|e| e.to_string())?;
        let rules = engine.compile_with_entrypoint(&"data.cofferdam.decision".into());
        Ok(Self { rules: rules.map_err(|e| e.to_string())?, version })
    }

    /// The SHA-256 of the rules' text, which says by which rules something was decided.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Decides. `tenant` is whose the thing is, `agent` is for whom the request says that it acts.
    pub fn decide(
        &self,
        principal: &Principal,
        action: Action,
        tenant: &str,
        agent: Option<&str>,
    ) -> Result<Permit, Denial> {
        self.decide_on(principal, action, tenant, Facts { agent, ..Facts::default() })
    }

    /// Decides on all that is known.
    pub fn decide_on(
        &self,
        principal: &Principal,
        action: Action,
        tenant: &str,
        facts: Facts<'_>,
    ) -> Result<Permit, Denial> {
        let input = json!({
            "principal": {
                "tenant": principal.tenant,
                "agent": principal.agent,
                "scopes": principal.scopes,
            },
            "action": action.as_str(),
            "resource": {"tenant": tenant},
            "facts": {"agent": facts.agent, "scopes": facts.scopes},
        });
        let broken =
            |why: String| Denial { rule: "policy".to_owned(), why, change: "tell the operator".to_owned() };
        let answer = self.rules.eval_with_input(Value::from(input));
        let answer = answer.map_err(|error| match error.chain().any(is_time) {
            true => late(),
            false => broken(error.to_string()),
        })?;
        let answer = answer.to_json_str().map_err(|e| broken(e.to_string()))?;
        let decision: Decision = serde_json::from_str(&answer).map_err(|e| broken(e.to_string()))?;
        match (decision.allow, decision.denials.into_iter().next()) {
            (true, None) => Ok(Permit { principal: principal.clone(), action, tenant: tenant.to_owned() }),
            (_, Some(denial)) => Err(denial),
            (false, None) => Err(broken("it was denied without a reason".to_owned())),
        }
    }
}

fn is_time(cause: &(dyn std::error::Error + 'static)) -> bool {
    matches!(cause.downcast_ref(), Some(LimitError::TimeLimitExceeded { .. }))
}

fn late() -> Denial {
    Denial {
        rule: "policy_timeout".to_owned(),
        why: format!("the rules have not decided within {} ms", DECISION_TIME.as_millis()),
        change: "try again; if it stays so, tell the operator".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn principal(scopes: &[&str]) -> Principal {
        let scopes = scopes.iter().map(|&scope| scope.to_owned()).collect();
        Principal { tenant: "ten-a".into(), actor: "key-a".into(), agent: None, scopes }
    }

    fn rule(denied: Result<Permit, Denial>) -> String {
        denied.unwrap_err().rule
    }

    #[test]
    fn a_scope_allows_what_it_is_for_in_its_own_tenant() {
        let policy = Policy::builtin();
        let reader = principal(&["jobs:read"]);
        let permit = policy.decide(&reader, Action::JobGet, "ten-a", None).unwrap();
        assert_eq!((permit.tenant(), permit.action()), ("ten-a", Action::JobGet));
        assert_eq!(rule(policy.decide(&reader, Action::JobCreate, "ten-a", None)), "scope");
        assert_eq!(rule(policy.decide(&reader, Action::JobGet, "ten-b", None)), "tenant");
    }

    #[test]
    fn other_rules_have_another_version() {
        let rules = include_str!("builtin.rego");
        let (one, two) = (Policy::parse(rules).unwrap(), Policy::parse(&format!("{rules}# more")).unwrap());
        assert_ne!(one.version(), two.version());
        assert_eq!(one.version().len(), 64);
    }

    #[test]
    fn every_action_has_a_scope_and_an_admin_has_all() {
        let policy = Policy::builtin();
        for action in Action::ALL {
            let admin = principal(&["*", "operator"]);
            assert!(policy.decide(&admin, action, "ten-a", None).is_ok(), "{action:?}");
            let denied = rule(policy.decide(&principal(&[]), action, "ten-a", None));
            assert!(denied == "scope" || denied == "operator", "{action:?}: {denied}");
        }
    }

    /// All of one's own tenant is not all tenants.
    #[test]
    fn only_an_operator_acts_on_tenants_and_on_keys_and_audits_of_others() {
        let policy = Policy::builtin();
        let (admin, operator) = (principal(&["*"]), principal(&["*", "operator"]));
        for action in Action::ALL.into_iter().filter(|action| action.as_str().starts_with("tenant.")) {
            assert_eq!(rule(policy.decide(&admin, action, "ten-a", None)), "operator", "{action:?}");
            assert!(policy.decide(&operator, action, "ten-a", None).is_ok(), "{action:?}");
        }
        for action in [Action::ImagePublish, Action::ImageWithdraw] {
            assert_eq!(rule(policy.decide(&admin, action, "ten-a", None)), "operator", "{action:?}");
        }
        let reader = principal(&["operator", "tenants:read"]);
        assert!(policy.decide(&reader, Action::TenantList, "ten-a", None).is_ok());
        assert_eq!(rule(policy.decide(&reader, Action::TenantCreate, "ten-a", None)), "scope");
        for action in Action::ALL {
            assert!(policy.decide(&admin, action, "ten-b", None).is_err(), "{action:?}");
            let foreign = policy.decide(&operator, action, "ten-b", None);
            let may_cross = ["key.", "audit."].iter().any(|begin| action.as_str().starts_with(begin));
            assert_eq!(foreign.is_ok(), may_cross, "{action:?}");
            if let Ok(permit) = foreign {
                assert_eq!((permit.tenant(), permit.principal().tenant.as_str()), ("ten-b", "ten-a"));
            }
        }
    }

    #[test]
    fn nobody_gives_what_they_do_not_have() {
        let policy = Policy::builtin();
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let give = |own: &[&str], given: &[&str]| {
            let given = words(given);
            let facts = Facts { scopes: &given, ..Facts::default() };
            policy.decide_on(&principal(own), Action::KeyCreate, "ten-a", facts)
        };
        assert!(give(&["keys:write", "jobs:read"], &["jobs:read"]).is_ok());
        assert!(give(&["*"], &["jobs:read", "*"]).is_ok());
        assert!(give(&["*", "operator"], &["operator"]).is_ok());
        for (own, given) in [
            (&["keys:write", "jobs:read"][..], &["jobs:write"][..]),
            (&["keys:write"], &["*"]),
            (&["*"], &["operator"]),
            (&["keys:write", "jobs:read"], &["jobs:read", "operator"]),
        ] {
            assert_eq!(rule(give(own, given)), "escalation", "{own:?} gives {given:?}");
        }
        // A key of an agent's stays an agent's.
        let agent = Principal { agent: Some("one".into()), ..principal(&["keys:write"]) };
        let for_agent = |agent_named| {
            let facts = Facts { agent: agent_named, ..Facts::default() };
            policy.decide_on(&agent, Action::KeyCreate, "ten-a", facts)
        };
        assert!(for_agent(Some("one")).is_ok());
        assert_eq!(rule(for_agent(Some("two"))), "agent");
        assert_eq!(rule(for_agent(None)), "escalation");
    }

    #[test]
    fn an_agents_key_acts_for_that_agent_only() {
        let policy = Policy::builtin();
        let agent = Principal { agent: Some("one".into()), ..principal(&["jobs:write"]) };
        assert!(policy.decide(&agent, Action::JobCreate, "ten-a", Some("one")).is_ok());
        assert!(policy.decide(&agent, Action::JobCreate, "ten-a", None).is_ok());
        let denial = policy.decide(&agent, Action::JobCreate, "ten-a", Some("two")).unwrap_err();
        assert_eq!(
            (denial.rule.as_str(), denial.change.as_str()),
            ("agent", "leave the agent out, or name one")
        );
    }

    /// Whoever asks is answered, however long the rules would take.
    #[test]
    fn rules_that_take_too_long_deny() {
        let rules = "package cofferdam\nimport rego.v1\n\
            decision := {\"allow\": true, \"denials\": []} if {\n\
            some a in numbers.range(1, 4000)\nsome b in numbers.range(1, 4000)\nsome c in numbers.range(1, 4000)\n\
            a + b + c == 0\n}";
        let policy = Policy::parse(rules).unwrap();
        let began = std::time::Instant::now();
        let denied = policy.decide(&principal(&["*"]), Action::JobGet, "ten-a", None).unwrap_err();
        assert_eq!(denied.rule, "policy_timeout");
        assert!(denied.why.contains("1000 ms"), "{denied}");
        let time = began.elapsed();
        assert!(time >= DECISION_TIME && time < DECISION_TIME * 20, "{time:?}");
    }

    #[test]
    fn rules_that_fail_or_say_nothing_deny() {
        for rules in [
            "package cofferdam\nimport rego.v1\ndecision := {\"allow\": \"yes\", \"denials\": []}",
            "package cofferdam\nimport rego.v1\ndecision := x if { x := input.nothing }",
            "package cofferdam\nimport rego.v1\ndecision := {\"allow\": false, \"denials\": []}",
        ] {
            let policy = Policy::parse(rules).unwrap();
            assert_eq!(
                rule(policy.decide(&principal(&["*"]), Action::JobGet, "ten-a", None)),
                "policy",
                "{rules}"
            );
        }
    }
}
