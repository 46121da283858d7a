use crate::KeyValue;

/// The keys on which a way through a table ends its steps. Each must lie beyond the one before. Of texts only the database knows
/// the order; but a way that has a key for a second time goes round for ever. That is seen by one key that is kept, a later
/// one whenever twice as many steps were made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trail {
    last: Option<KeyValue>,
    mark: Option<KeyValue>,
    steps: u64,
    next_mark: u64,
}

impl Trail {
    /// Where it is, to go on behind it.
    pub(crate) fn last(&self) -> Option<&KeyValue> {
        self.last.as_ref()
    }

    /// Goes on to a key; `false` where that leads back.
    pub(crate) fn step(&mut self, key: KeyValue) -> bool {
        let places = (self.last.as_ref().and_then(KeyValue::place), key.place());
        let is_back = match places {
            (Some(last), Some(place)) => place <= last,
            _ => self.last.as_ref() == Some(&key) || self.mark.as_ref() == Some(&key),
        };
        self.steps += 1;
        if self.steps > self.next_mark {
            self.next_mark = self.steps * 2;
            self.mark = Some(key.clone());
        }
        self.last = Some(key);
        !is_back
    }
}

#[cfg(test)]
mod tests {
    use super::Trail;
    use crate::KeyValue;

    fn text(number: u64) -> KeyValue {
        KeyValue::Text(number.to_string())
    }

    #[test]
    fn a_way_that_goes_on_is_never_said_to_lead_back() {
        let (mut texts, mut integers) = (Trail::default(), Trail::default());
        for number in 0..1000_u64 {
            assert!(texts.step(text(number ^ 0x155)));
            assert!(integers.step(KeyValue::Integer(number as i64 * 3 - 900)));
        }
    }

    #[test]
    fn every_circle_is_seen() {
        for (before, length) in [(0, 1), (0, 2), (1, 1), (3, 4), (100, 1), (100, 7), (5, 300)] {
            let mut trail = Trail::default();
            let way = (0..before).chain((before..before + length).cycle());
            let steps = way.take(4000).take_while(|number| trail.step(text(*number)));
            let steps = steps.count() as u64;
            assert!(
                steps <= 4 * (before + length) + 4,
                "{steps} for {before} and {length}"
            );
        }
    }

    #[test]
    fn integers_that_do_not_rise_are_seen_at_once() {
        for second in [7, 6, i64::MIN] {
            let mut trail = Trail::default();
            assert!(trail.step(KeyValue::Integer(7)));
            assert!(!trail.step(KeyValue::Integer(second)));
        }
    }
}
