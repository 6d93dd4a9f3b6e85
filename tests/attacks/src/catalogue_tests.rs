use super::*;
use crate::host::DRIVERS;
use std::collections::BTreeSet;

/// The names of the probes, from the tables at the end of each source file.
fn probes() -> BTreeSet<String> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("probe");
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "c") {
            let text = std::fs::read_to_string(path).unwrap();
            let rows = text.lines().filter_map(|line| line.trim().strip_prefix("{ \""));
            let first = rows.filter_map(|row| Some(row.split_once("\", ")?.0.to_owned()));
            names.extend(first.filter(|name| ids().any(|id| name.starts_with(id))));
        }
    }
    names
}

#[test]
fn every_case_of_the_threat_list_is_in_the_catalogue_and_no_other() {
    let catalogue = Catalogue::load().unwrap();
    let wanted: BTreeSet<&str> = ids().collect();
    let there: BTreeSet<&str> = catalogue.case.keys().map(String::as_str).collect();
    assert_eq!(wanted, there);
}

#[test]
fn every_case_is_run_or_has_a_reason() {
    for (id, case) in Catalogue::load().unwrap().case {
        let said = case.na.is_some() || case.later.is_some();
        let is_run = !case.runs.is_empty() || !case.host.is_empty() || !case.service.is_empty();
        assert!(is_run || said, "{id}");
        for run in case.runs {
            assert!(run.steps.is_empty() == run.no_control.is_some(), "{id}: {} has no control", run.probe);
        }
    }
}

#[test]
fn every_probe_and_driver_that_is_named_exists() {
    let (catalogue, probes) = (Catalogue::load().unwrap(), probes());
    let known = |name: &String| assert!(probes.contains(name), "no probe {name}");
    let driven = |name: &String| assert!(DRIVERS.contains(&name.as_str()), "no driver {name}");
    for case in catalogue.case.values() {
        case.runs.iter().for_each(|run| known(&run.probe));
        case.host.iter().for_each(|host| driven(&host.driver));
        case.host.iter().flat_map(|host| &host.probes).for_each(known);
    }
    for kill in catalogue.control.values() {
        kill.probes.iter().for_each(known);
        kill.drivers.iter().for_each(driven);
    }
}

#[test]
fn every_driver_and_probe_is_used() {
    let catalogue = Catalogue::load().unwrap();
    let hosts = || catalogue.case.values().flat_map(|case| &case.host);
    for driver in DRIVERS {
        assert!(hosts().any(|host| host.driver == *driver), "{driver} is in no case");
    }
    let runs = catalogue.case.values().flat_map(|case| &case.runs).map(|run| &run.probe);
    let used: BTreeSet<&String> = runs.chain(hosts().flat_map(|host| &host.probes)).collect();
    for probe in probes() {
        assert!(used.contains(&probe), "{probe} is in no case");
    }
}

#[test]
fn every_attack_on_the_service_is_named_and_exists() {
    let catalogue = Catalogue::load().unwrap();
    let named = catalogue.case.values().flat_map(|case| &case.service).map(|service| service.attack.as_str());
    let mut named: Vec<&str> = named.collect();
    let mut known: Vec<&str> = crate::service::ATTACKS.iter().map(|(name, _)| *name).collect();
    known.extend(crate::service::sessions::states::ALL.iter().map(|(name, _)| *name));
    named.sort_unstable();
    known.sort_unstable();
    assert_eq!(named, known);
    for (id, case) in &catalogue.case {
        assert!(case.service.iter().all(|service| service.attack.starts_with(id.as_str())), "{id}");
    }
}

#[test]
fn every_control_has_something_that_notices_or_a_reason() {
    let catalogue = Catalogue::load().unwrap();
    for control in Control::ALL {
        let kill = catalogue.control.get(&control.name());
        let kill = kill.unwrap_or_else(|| panic!("{control} is not in the catalogue"));
        assert!(!kill.probes.is_empty() || !kill.drivers.is_empty() || kill.reason.is_some(), "{control}");
    }
    assert_eq!(catalogue.control.len(), Control::ALL.len());
}

#[test]
fn probes_that_notice_a_control_leave_it_out() {
    let catalogue = Catalogue::load().unwrap();
    for (name, kill) in &catalogue.control {
        for probe in &kill.probes {
            let runs = catalogue.case.values().flat_map(|case| &case.runs);
            let mut steps = runs.filter(|run| run.probe == *probe).flat_map(|run| &run.steps);
            assert!(steps.any(|step| step.0.name() == *name), "{probe} never leaves out {name}");
        }
    }
}

#[test]
fn what_differs_between_modes_has_a_reason_and_is_run_in_another() {
    let catalogue = Catalogue::load().unwrap();
    let check = |what: &str, reasons: &Reasons| {
        assert!(reasons.len() < Mode::ALL.len(), "{what} is run nowhere");
        assert!(reasons.values().all(|reason| !reason.trim().is_empty()), "{what}: no reason");
    };
    for case in catalogue.case.values() {
        for run in &case.runs {
            check(&run.probe, &run.not_on);
            check(&run.probe, &run.no_control_on);
            assert!(run.no_control.is_none() || run.no_control_on.is_empty(), "{}: said twice", run.probe);
        }
        case.host.iter().for_each(|host| check(&host.driver, &host.not_on));
    }
    for (name, kill) in &catalogue.control {
        check(name, &kill.not_on);
        check(name, &kill.inseparable_on);
    }
}

#[test]
fn every_mode_has_its_golden_posture() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    for mode in Mode::ALL {
        for who in ["init", "payload"] {
            let file = folder.join(format!("{who}-{mode}.txt"));
            assert!(file.metadata().is_ok_and(|metadata| metadata.len() > 0), "{}", file.display());
        }
    }
}
