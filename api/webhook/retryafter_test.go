package webhook_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/webhook"
)

func TestRetryAfter_IsReadInFull(t *testing.T) {
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // time at which fake time (testing/synctest) starts
	date := func(d time.Duration) string { return start.Add(d).Format("Mon, 02 Jan 2006 15:04:05 GMT") }
	for _, tc := range []struct {
		headers string
		want    time.Duration
	}{
		{"", 0},
		{"Retry-After: 0\r\n", 0},
		{"Retry-After: 120\r\n", 2 * time.Minute},
		{"Retry-After:   7  \r\n", 7 * time.Second},
		{"Retry-After: 1814400\r\n", 21 * 24 * time.Hour},
		{"Retry-After: 99999999999999999999999\r\n", 365 * 24 * time.Hour},
		{"Retry-After: 9223372036854775807\r\n", 365 * 24 * time.Hour},
		{"Retry-After: -1\r\n", 0},
		{"Retry-After: 1.5\r\n", 0},
		{"Retry-After: soon\r\n", 0},
		{"Retry-After: " + date(40*time.Hour) + "\r\n", 40 * time.Hour},
		{"Retry-After: " + start.Add(time.Hour).Format(time.RFC3339) + "\r\n", 0},
		{"Retry-After: Saturday, 01-Jan-00 01:00:00 GMT\r\n", time.Hour},
		{"Retry-After: Sat Jan  1 01:00:00 2000\r\n", time.Hour},
		{"Retry-After: " + date(-time.Hour) + "\r\n", 0},
		{"Date: " + date(-time.Hour) + "\r\nRetry-After: " + date(-time.Hour+5*time.Second) + "\r\n", 5 * time.Second}, // the receiver's clock is an hour behind
		{"Date: never\r\nRetry-After: " + date(5*time.Second) + "\r\n", 5 * time.Second},
		{"Retry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\n", 365 * 24 * time.Hour},
	} {
		for _, status := range []int{429, 503} {
			call(t, func(conn net.Conn) {
				skipRequest(conn)
				fmt.Fprintf(conn, "HTTP/1.1 %d x\r\n%sContent-Length: 0\r\n\r\n", status, tc.headers)
			}, func(t *testing.T, r webhook.Result, _ time.Duration) {
				require.Equal(t, status, r.Answer.Status)
				require.Equal(t, tc.want, r.Answer.RetryAfter, tc.headers)
			})
		}
	}
}
