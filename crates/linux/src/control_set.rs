//! Sets of controls as bits, small enough to pass through a pipe or to keep in a register.

use cofferdam_core::Control;

/// A set of controls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ControlSet(pub u64);

impl ControlSet {
    pub const EMPTY: Self = Self(0);

    pub const fn of(controls: &[Control]) -> Self {
        let mut bits = 0;
        let mut i = 0;
        while i < controls.len() {
            bits |= 1 << controls[i] as u64;
            i += 1;
        }
        Self(bits)
    }

    pub const fn has(self, control: Control) -> bool {
        self.0 & 1 << control as u64 != 0
    }

    pub fn insert(&mut self, control: Control) {
        self.0 |= 1 << control as u64;
    }

    /// Notes what a probe saw.
    pub fn set(&mut self, control: Control, holds: bool) {
        if holds {
            self.insert(control);
        }
    }

    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is in this set and not in the other.
    pub fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn iter(self) -> impl Iterator<Item = Control> {
        Control::ALL.into_iter().filter(move |control| self.has(*control))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_control_has_its_own_bit() {
        let all = ControlSet::of(&Control::ALL);
        assert_eq!(all.iter().count(), Control::ALL.len());
        assert!(all.minus(ControlSet::of(&[Control::Seccomp])).iter().all(|c| c != Control::Seccomp));
    }
}
