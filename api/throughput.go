package api

import "time"

// A throughput enforces a minimum rate on a client. The client has a credit of time. A transfer
// reduces the credit by its duration, and increases it by the time that its bytes would take at the
// minimum rate. The credit is at most window, so a client is disconnected if it pauses for more
// than that.
type throughput struct {
	rate   int64 // minimum rate in bytes per second
	window time.Duration
	credit time.Duration
}

func newThroughput(rate int64, window time.Duration) throughput {
	return throughput{rate: rate, window: window, credit: window}
}

// deadline returns the time at which a transfer that starts now becomes too slow, or limit if that
// is earlier.
func (t *throughput) deadline(now, limit time.Time) time.Time {
	if at := now.Add(t.credit); at.Before(limit) {
		return at
	}
	return limit
}

// add adjusts the credit after a transfer of n bytes.
func (t *throughput) add(n int, took time.Duration) {
	earned := time.Duration(float64(n) / float64(t.rate) * float64(time.Second))
	t.credit = max(0, min(t.window, t.credit-took+earned))
}
