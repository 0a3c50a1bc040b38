package config

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

const (
	day          = 24 * time.Hour
	minRetention = time.Minute
	maxRetention = 36_500 * day
	forever      = "forever"
)

// A retentionValue is a duration, optionally in days. Zero means forever.
type retentionValue time.Duration

func (v *retentionValue) String() string {
	if *v == 0 {
		return forever
	}
	return daysText(time.Duration(*v))
}

// daysText formats a duration in the largest unit of which it is a multiple:
// days, hours or minutes.
func daysText(d time.Duration) string {
	switch {
	case d%day == 0:
		return strconv.FormatInt(int64(d/day), 10) + "d"
	case d%time.Hour == 0:
		return strconv.FormatInt(int64(d/time.Hour), 10) + "h"
	case d%time.Minute == 0:
		return strings.TrimSuffix(d.String(), "0s")
	default:
		return d.String()
	}
}

func (v *retentionValue) Set(s string) error {
	s = strings.ToLower(strings.TrimSpace(s))
	if s == forever || s == "0" {
		*v = 0
		return nil
	}
	d, err := parseDays(s)
	if err != nil || d < minRetention || d > maxRetention {
		return errors.New("want a time of 1m or more, such as 36h or 7d, up to 36500d, or forever")
	}
	*v = retentionValue(d)
	return nil
}

// parseDays parses a duration such as 36h, or a number of days such as 7d.
func parseDays(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * day, err
	}
	return time.ParseDuration(s)
}
