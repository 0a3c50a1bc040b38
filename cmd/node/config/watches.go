package config

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Watches configures the calls that notify watches.
type Watches struct {
	Base     string        // URL prefix of resources; "" for the node's URL
	Period   time.Duration // time between a change and the second attempt to notify a watch
	Attempts int           // maximum number of attempts to notify a watch of a change
}

func defaultWatches() Watches { return Watches{Period: time.Hour, Attempts: 5} }

// Policy returns the policy for retries of calls to watches.
func (w *Watches) Policy() domain.Policy { return domain.WatchPolicy(w.Period, w.Attempts) }

// A periodValue is the time before a retry. A number without a unit is in seconds.
type periodValue time.Duration

const (
	minPeriod = time.Second
	maxPeriod = 30 * day
)

func (v *periodValue) String() string { return time.Duration(*v).String() }

func (v *periodValue) Set(s string) error {
	d, err := parseDays(s)
	if err != nil {
		d, err = time.ParseDuration(s + "s")
	}
	if err != nil || d < minPeriod || d > maxPeriod {
		return errors.New("want a time of 1s to 30d, such as 1h")
	}
	*v = periodValue(d)
	return nil
}

// An attemptsValue is a maximum number of attempts.
type attemptsValue int

const maxWatchAttempts = 20

func (v *attemptsValue) String() string { return strconv.Itoa(int(*v)) }

func (v *attemptsValue) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxWatchAttempts {
		return fmt.Errorf("want a whole number of 1 to %d", maxWatchAttempts)
	}
	*v = attemptsValue(n)
	return nil
}

// maxWatchSpan is the maximum time between a change and the last attempt to
// notify a watch. It is less than the 21 days for which the stream stores a
// change.
const maxWatchSpan = 20 * day

func (c *Config) validateWatches(fault faultFunc) {
	w := &c.Watches
	if w.Base != "" {
		if _, err := domain.ParseResourceBase(w.Base); err != nil {
			fault("watches.base", "%w", err)
		}
	}
	span := w.Period
	for range w.Attempts - 2 {
		span = min(2*span, 2*maxWatchSpan)
	}
	if w.Attempts > 1 && span > maxWatchSpan {
		fault("watches.attempts", "the last attempt would be more than %s after a change, and changes are kept for 21d; lower it, or watches.period = %s", daysText(maxWatchSpan), daysText(w.Period))
	}
}
