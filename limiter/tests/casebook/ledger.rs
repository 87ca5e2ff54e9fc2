//! What ran, what did not, and why not.

use super::case::{Case, Step, cases};

/// A reason, and the cases that it holds for.
pub type Reasons = &'static [(&'static str, &'static [&'static str])];

/// Cases that don't run, or not as a whole.
pub struct Exceptions {
    /// None of it runs, because a step of it can't.
    pub left_out: Reasons,
    /// It could run, but would take too long.
    pub too_long: Reasons,
    /// Steps that can't run are left out: the others don't depend on them.
    pub in_part: Reasons,
}

/// The account of a run.
#[derive(Default)]
pub struct Ledger {
    /// So many ran, …
    cases: usize,
    /// … so many of them in part, …
    in_part: usize,
    /// … with so many steps.
    steps: usize,
    left_out: usize,
    faults: Vec<String>,
    lines: Vec<String>,
}

impl Ledger {
    /// Runs all cases. `can` says whether a step can run at all; `run` runs those steps of a case and returns what
    /// deviates.
    pub fn of(exceptions: &Exceptions, can: impl Fn(&Step) -> bool, mut run: impl FnMut(&Case) -> Vec<String>) -> Self {
        let mut ledger = Self::default();
        let all = cases();
        ledger.check_exceptions(exceptions, &all);
        for case in &all {
            let possible = case.steps.iter().filter(|step| can(step)).count();
            let is_whole = possible == case.steps.len();
            let listed = |reasons: Reasons| {
                reasons.iter().find(|(_, ids)| ids.contains(&case.id.as_str())).map(|(reason, _)| *reason)
            };
            let (left_out, in_part) = (listed(exceptions.left_out), listed(exceptions.in_part));
            match (is_whole, left_out.or(in_part)) {
                (false, None) => ledger.fault(case, "can't run as a whole, and no reason is given"),
                (true, Some(reason)) => ledger.fault(case, &format!("runs as a whole, so strike it out of: {reason}")),
                _ => {}
            }
            if let Some(reason) = left_out.filter(|_| !is_whole).or(listed(exceptions.too_long)) {
                ledger.left_out += 1;
                ledger.note(case, &format!("left out: {reason}"));
                continue;
            }
            ledger.cases += 1;
            ledger.steps += possible;
            if let Some(reason) = in_part {
                ledger.in_part += 1;
                ledger.note(case, &format!("{possible} of {} steps ran: {reason}", case.steps.len()));
            }
            for fault in run(case) {
                ledger.fault(case, &fault);
            }
        }
        ledger
    }

    /// Prints the account; fails if anything deviates, or if less ran than did before.
    pub fn close(self, what: &str, least_cases: usize, least_steps: usize) {
        let (cases, steps) = (self.cases, self.steps);
        println!("{}", self.lines.join("\n"));
        println!(
            "{what}: {cases} cases ran, {} of them in part, with {steps} steps; {} left out",
            self.in_part, self.left_out
        );
        assert!(self.faults.is_empty(), "{} deviations:\n{}", self.faults.len(), self.faults.join("\n"));
        assert!(
            cases >= least_cases && steps >= least_steps,
            "{cases} cases with {steps} steps ran, but {least_cases} with {least_steps} did before"
        );
    }

    fn check_exceptions(&mut self, exceptions: &Exceptions, all: &[Case]) {
        let lists = [exceptions.left_out, exceptions.too_long, exceptions.in_part];
        let mut seen: Vec<&str> = Vec::new();
        for &id in lists.into_iter().flatten().flat_map(|(_, ids)| *ids) {
            if seen.contains(&id) || all.iter().all(|case| case.id != id) {
                self.faults.push(format!("{id}: listed twice, or no case at all"));
            }
            seen.push(id);
        }
    }

    fn note(&mut self, case: &Case, text: &str) {
        self.lines.push(format!("{} {text} ({})", case.id, case.title));
    }

    fn fault(&mut self, case: &Case, text: &str) {
        self.faults.push(format!("{} {text} ({})", case.id, case.title));
    }
}
