//! What a call leaves of a state that is too big to be a value.

use rl_limiter::Plan;
use rl_limiter::layout::Stored;

/// What is stored after a call that would do this, as the command does it. In place it writes no more than `most`
/// bytes.
pub fn left(bytes: &[u8], plan: Option<&impl Plan>, most: usize) -> Option<Vec<u8>> {
    let Some(plan) = plan else { return Some(bytes.to_vec()) };
    if plan.leaves_nothing() {
        return None;
    }
    let left = if plan.fits() { in_place(bytes, plan, most) } else { plan.make(bytes) };
    assert_eq!(left.len(), plan.length());
    assert!(Stored::has_length(left.len()), "{} bytes, which nothing has", left.len());
    Some(left)
}

/// What is made where there was nothing in use: of what is there still, nothing is kept.
pub fn over_unused(bytes: &[u8], plan: Option<&impl Plan>) {
    let Some(plan) = plan else { return };
    assert!(!plan.fits(), "what is made anew has no bytes to fit in");
    let made = plan.make(&[]);
    assert!(Stored::read(&made).is_ok() && made.len() == plan.length());
    assert_eq!(plan.make(bytes), made, "something of what was unused is kept");
}

/// Carried out in the bytes that there are. What is told as touched is all that changed: a replica gets no more.
fn in_place(bytes: &[u8], plan: &impl Plan, most: usize) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    let touched = plan.carry_out(&mut changed);
    let mut replica = bytes.to_vec();
    for range in touched.ranges() {
        replica[range.clone()].copy_from_slice(&changed[range.clone()]);
    }
    assert_eq!(replica, changed, "more changed than was told");
    let written: usize = touched.ranges().iter().map(|range| range.len()).sum();
    assert!(written <= most.min(bytes.len()), "{written} bytes written to {}", bytes.len());
    changed
}
