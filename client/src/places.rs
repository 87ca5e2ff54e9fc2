//! Places that this process has given out, by key.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How many units of each key are held here. It has an entry only for what is held.
#[derive(Default)]
pub(crate) struct Places(Mutex<HashMap<Box<str>, u64>>);

/// Units that are held until this is dropped.
pub(crate) struct Place {
    places: Arc<Places>,
    key: Box<str>,
    units: u64,
}

impl Places {
    /// Holds so many units more, if that makes no more than `most`. Else how many are held.
    pub fn take(self: &Arc<Self>, key: &str, units: u64, most: u64) -> Result<Place, u64> {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let held = places.get(key).copied().unwrap_or(0);
        match held.checked_add(units).filter(|&sum| sum <= most) {
            None => Err(held),
            Some(sum) => {
                places.insert(key.into(), sum);
                Ok(Place { places: Arc::clone(self), key: key.into(), units })
            }
        }
    }

    /// How many units are held.
    pub fn held(&self, key: &str) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied().unwrap_or(0)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut places = self.places.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = places.get_mut(&*self.key) {
            *held = held.saturating_sub(self.units);
            if *held == 0 {
                places.remove(&*self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Places;

    #[test]
    fn no_more_than_the_most_are_held_and_what_is_dropped_is_free_again() {
        let places = Arc::new(Places::default());
        let two = places.take("key", 2, 3).unwrap_or_else(|_| panic!("2 of 3"));
        assert_eq!(places.take("key", 2, 3).err(), Some(2));
        let one = places.take("key", 1, 3).unwrap_or_else(|_| panic!("3 of 3"));
        assert!(places.take("other", 3, 3).is_ok());
        assert_eq!(places.take("key", u64::MAX, u64::MAX).err(), Some(3));
        drop(two);
        assert_eq!(places.held("key"), 1);
        drop(one);
        assert!(places.0.lock().unwrap().is_empty(), "it grows with what was held once");
    }
}
