//! Arguments, read in place.

use rl_limiter::lease::{Seq, Ttl};
use rl_limiter::quantity::ArgumentError;
use rl_limiter::{Age, Capacity, Cost, Limit, Name, Rate, Window};

use crate::server::{Call, Error};

/// The arguments of a call, by index: 0 is the command's name, 1 the key.
pub struct Args<'a, 'c>(&'a Call<'c>);

impl<'a, 'c> Args<'a, 'c> {
    /// The arguments of a call that may have `most` of them, its name counted. The fewest are the command's arity,
    /// which the server checks.
    pub fn of(call: &'a Call<'c>, most: usize) -> Result<Self, Error> {
        if call.argument_count() > most { Err(Error::WrongArity) } else { Ok(Self(call)) }
    }

    /// The arguments of a call that has so many of them `each` time, from 1 to `most` times, behind its name; and how
    /// many times.
    pub fn of_each(call: &'a Call<'c>, each: usize, most: usize) -> Result<(Self, usize), Error> {
        let count = call.argument_count().saturating_sub(1);
        if count == 0 || !count.is_multiple_of(each) {
            return Err(Error::WrongArity);
        }
        let times = count / each;
        if times > most {
            return Err(Error::formatted(format_args!("ERR a call may ask from 1 to {most} limits, not {times}")));
        }
        Ok((Self(call), times))
    }

    /// The word at `index`.
    pub fn word(&self, index: usize) -> Result<&'a [u8], Error> {
        self.0.argument(index).ok_or(Error::WrongArity)
    }

    /// The limit at `index`.
    pub fn limit(&self, index: usize) -> Result<Limit, Error> {
        self.required(index, |text| Limit::parse("limit", text))
    }

    /// The capacity at `index`.
    pub fn capacity(&self, index: usize) -> Result<Capacity, Error> {
        self.required(index, |text| Capacity::parse("capacity", text))
    }

    /// The window at `index`.
    pub fn window(&self, index: usize) -> Result<Window, Error> {
        self.required(index, |text| Window::parse("window", text))
    }

    /// The rate at `index`.
    pub fn rate(&self, index: usize) -> Result<Rate, Error> {
        self.required(index, |text| Rate::parse("rate", text))
    }

    /// The ttl at `index`.
    pub fn ttl(&self, index: usize) -> Result<Window, Error> {
        self.required(index, |text| Window::parse("ttl", text))
    }

    /// The holder at `index`.
    pub fn holder(&self, index: usize) -> Result<Name<'c>, Error> {
        self.required(index, |text| Name::parse("holder", text))
    }

    /// The cost at `index`, or 1 if the call ends before it.
    pub fn cost(&self, index: usize) -> Result<Cost, Error> {
        match self.0.argument(index) {
            Some(text) => Cost::parse("cost", text).map_err(bad_argument),
            None => Ok(Cost::ONE),
        }
    }

    /// The number from 1 to `most` at `index`, or `default` if the call ends before it.
    pub fn number(&self, index: usize, name: &str, default: u32, most: u32) -> Result<u32, Error> {
        let Some(text) = self.0.argument(index) else { return Ok(default) };
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        // Nothing but its digits: no sign, no leading zeros.
        number
            .filter(|number: &u32| (1..=most).contains(number) && number.to_string().as_bytes() == text)
            .ok_or_else(|| Error::formatted(format_args!("ERR {name} must be an integer from 1 to {most}")))
    }

    /// The amount at `index`.
    pub fn amount(&self, index: usize) -> Result<Cost, Error> {
        self.required(index, |text| Cost::parse("amount", text))
    }

    /// The age that follows the keyword `AGE` at `index`, if the call does not end before it.
    pub fn age(&self, index: usize) -> Result<Option<Age>, Error> {
        match (self.0.argument(index), self.0.argument(index + 1)) {
            (None, _) => Ok(None),
            (Some(keyword), Some(age)) if keyword.eq_ignore_ascii_case(b"AGE") => {
                Age::parse("AGE", age).map(Some).map_err(bad_argument)
            }
            _ => Err(Error::fixed(c"ERR only AGE and a duration may follow the amount")),
        }
    }

    /// The node at `index`.
    pub fn node(&self, index: usize) -> Result<Name<'c>, Error> {
        self.required(index, |text| Name::parse("node", text))
    }

    /// The number of a node's call at `index`.
    pub fn seq(&self, index: usize) -> Result<Seq, Error> {
        self.required(index, |text| Seq::parse("seq", text))
    }

    /// The tokens that a node says it has, at `index`.
    pub fn have(&self, index: usize) -> Result<Cost, Error> {
        self.required(index, |text| Cost::parse("have", text))
    }

    /// The tokens that a node wants to have, at `index`.
    pub fn want(&self, index: usize) -> Result<Cost, Error> {
        self.required(index, |text| Cost::parse("want", text))
    }

    /// How long a node's row is kept, at `index`.
    pub fn lease_ttl(&self, index: usize) -> Result<Ttl, Error> {
        self.required(index, |text| Ttl::parse("ttl", text))
    }

    /// The tokens that follow the keyword `MIN` at `index`; 0 if the call ends before it.
    pub fn min(&self, index: usize) -> Result<Cost, Error> {
        match (self.0.argument(index), self.0.argument(index + 1)) {
            (None, _) => Ok(Cost::ZERO),
            (Some(keyword), Some(least)) if keyword.eq_ignore_ascii_case(b"MIN") => {
                Cost::parse("MIN", least).map_err(bad_argument)
            }
            _ => Err(Error::fixed(c"ERR only MIN and an integer may follow the ttl")),
        }
    }

    /// Whether the keyword `XX` is at `index`, where the call ends with it or before it.
    pub fn xx(&self, index: usize) -> Result<bool, Error> {
        match self.0.argument(index) {
            None => Ok(false),
            Some(_) if self.is_last_and_xx(index) => Ok(true),
            Some(_) => Err(Error::fixed(c"ERR only XX may follow the cost")),
        }
    }

    /// Whether the call ends with the keyword `XX`, at `index`.
    pub fn is_last_and_xx(&self, index: usize) -> bool {
        let is_xx = self.0.argument(index).is_some_and(|word| word.eq_ignore_ascii_case(b"XX"));
        is_xx && self.0.argument_count() == index + 1
    }

    fn required<T>(&self, index: usize, parse: impl Fn(&'c [u8]) -> Result<T, ArgumentError>) -> Result<T, Error> {
        parse(self.0.argument(index).ok_or(Error::WrongArity)?).map_err(bad_argument)
    }
}

fn bad_argument(error: ArgumentError) -> Error {
    Error::formatted(format_args!("ERR {error}"))
}
