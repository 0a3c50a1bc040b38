package api

import "time"

// A throughput enforces a minimum rate on a client. The client has a credit of time:
// the time of each transfer is subtracted, the time that its bytes may take at the
// minimum rate is added, and the credit is at most window. So a client may pause for
// a window before it is cut off.
type throughput struct {
	rate   int64 // bytes per second
	window time.Duration
	credit time.Duration
}

func newThroughput(rate int64, window time.Duration) throughput {
	return throughput{rate: rate, window: window, credit: window}
}

// deadline returns when a transfer that begins now is too slow, or limit if that is
// sooner.
func (t *throughput) deadline(now, limit time.Time) time.Time {
	if at := now.Add(t.credit); at.Before(limit) {
		return at
	}
	return limit
}

// add accounts for a transfer of n bytes that took the time took.
func (t *throughput) add(n int, took time.Duration) {
	earned := time.Duration(float64(n) / float64(t.rate) * float64(time.Second))
	t.credit = max(0, min(t.window, t.credit-took+earned))
}
