//! What a call does to a state that is too big to be a value.

use crate::page::Touched;
use crate::quantity::Micros;

/// A change that was decided and is yet to be made, to the bytes of the state for which it was made: in place if it fits,
/// else by making them anew.
pub trait Plan {
    /// Whether it leaves a state without use: as good as none.
    fn leaves_nothing(&self) -> bool;

    /// Whether it can be carried out in the bytes that the state has. Else they have to be made anew.
    fn fits(&self) -> bool;

    /// How many bytes the state has then.
    fn length(&self) -> usize;

    /// Carries it out in the bytes of the state, in which it [fits](Plan::fits). Returns which bytes it touched.
    fn carry_out(&self, bytes: &mut [u8]) -> Touched;

    /// The bytes of a new state: that for which it was made, none if there was none, after it was carried out.
    fn make(&self, bytes: &[u8]) -> Vec<u8>;

    /// The first moment at which the state that it has left, in these bytes, can't be told from a missing one.
    fn unused_at(&self, bytes: &[u8]) -> Micros;

    /// Two moments between which that is, if they are known without a look at the bytes: often they are all that somebody must know.
    fn unused_within(&self) -> Option<(Micros, Micros)> {
        None
    }
}
