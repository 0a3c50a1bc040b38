package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/domain"
)

// call calls a receiver with fake time. serve serves the receiver's connections. check checks the
// result and the duration of the call.
func call(t *testing.T, serve func(net.Conn), check func(*testing.T, webhook.Result, time.Duration)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.add("receiver.example", "8.8.8.8", serve)
		c := n.client(webhook.Options{Timeout: 30 * time.Second})
		start := time.Now()
		d := delivery("http://receiver.example/hook?token=hush")
		r := send(t, c, d)
		require.NotContains(t, r.Answer.Error, "hush")
		require.NotContains(t, r.Answer.Error, "/hook")
		require.Equal(t, start, r.Answer.Began)
		check(t, r, time.Since(start))
	})
}

// sendByteByByte sends head, and then one byte per second forever.
func sendByteByByte(head string) func(net.Conn) {
	return func(conn net.Conn) {
		if !skipRequest(conn) {
			return
		}
		for _, err := conn.Write([]byte(head)); err == nil; _, err = conn.Write([]byte("x")) {
			<-time.After(time.Second)
		}
	}
}

func TestASlowReceiver_IsAFailedAttemptAtTheDeadline(t *testing.T) {
	for _, tc := range []struct {
		name   string
		serve  func(net.Conn)
		status int
		reason string
	}{
		{"does not accept", nil, 0, "no connection within 30s"},
		{"does not read", func(conn net.Conn) { <-time.After(time.Hour) }, 0, "no complete answer within 30s"},
		{"does not answer", func(conn net.Conn) { skipRequest(conn); skipRequest(conn) }, 0, "no complete answer within 30s"},
		{"drips its status", sendByteByByte(""), 0, "no complete answer within 30s"},
		{"drips its headers", sendByteByByte("HTTP/1.1 200 OK\r\nA: "), 0, "no complete answer within 30s"},
		{"drips a success", sendByteByByte("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"), 0, "no complete answer within 30s"},
		{"drips a refusal", sendByteByByte("HTTP/1.1 503 x\r\nRetry-After: 7\r\nContent-Length: 1000\r\n\r\n"), 503, "the receiver failed (503)"},
		{"announces for ever", func(conn net.Conn) {
			for skipped := skipRequest(conn); skipped; <-time.After(time.Second) {
				if _, err := conn.Write([]byte("HTTP/1.1 102 Processing\r\n\r\n")); err != nil {
					return
				}
			}
		}, 0, "no complete answer within 30s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			call(t, tc.serve, func(t *testing.T, r webhook.Result, took time.Duration) {
				require.Equal(t, 30*time.Second, took)
				require.Equal(t, took, r.Answer.Took)
				require.Equal(t, tc.status, r.Answer.Status)
				require.Contains(t, r.Answer.Error, tc.reason)
				if tc.status == 503 {
					require.Equal(t, 7*time.Second, r.Answer.RetryAfter)
				}
			})
		})
	}
}

// A receiver never finishes the TLS handshake. The attempt fails, and the handshake, which outlasts
// the call, ends at its own deadline.
func TestAHandshakeThatHangs_IsAFailedAttemptAndLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.hosts["receiver.example"] = []netip.Addr{netip.MustParseAddr("8.8.8.8")}
		ended := false
		n.serve["8.8.8.8:443"] = func(conn net.Conn) {
			for _, err := conn.Read(make([]byte, 1)); err == nil; _, err = conn.Read(make([]byte, 1)) {
			}
			ended = true
		}
		c := n.client(webhook.Options{Timeout: 30 * time.Second})
		r := send(t, c, delivery("https://receiver.example/hook"))
		require.Equal(t, 30*time.Second, r.Answer.Took)
		require.Contains(t, r.Answer.Error, "no connection within 30s")
		<-time.After(time.Second)
		synctest.Wait()
		require.True(t, ended)
	})
}

// Each response of a receiver results in the verdict that the receiver's policy specifies.
func TestAnAnswer_DeterminesTheVerdictOfThePolicy(t *testing.T) {
	p := domain.DefaultPolicy()
	for answer, want := range map[string]func(*testing.T, domain.Answer, domain.RetryDecision){
		"204 x\r\n": func(t *testing.T, a domain.Answer, _ domain.RetryDecision) { require.True(t, p.IsSuccess(a)) },
		"429 x\r\nRetry-After: 144000\r\nContent-Length: 0\r\n": func(t *testing.T, a domain.Answer, v domain.RetryDecision) {
			require.Equal(t, a.Ended().Add(40*time.Hour), v.Hold)
		},
		"410 x\r\nContent-Length: 0\r\n": func(t *testing.T, a domain.Answer, v domain.RetryDecision) {
			require.True(t, v.Pause)
			require.False(t, v.Dead)
		},
		"500 x\r\nContent-Length: 0\r\n": func(t *testing.T, a domain.Answer, v domain.RetryDecision) {
			require.Equal(t, domain.RetryDecision{Due: v.Due}, v)
			require.WithinDuration(t, a.Ended().Add(5*time.Second), v.Due, time.Second)
		},
		"200 x\r\nContent-Length: 9\r\n": func(t *testing.T, a domain.Answer, v domain.RetryDecision) {
			require.False(t, p.IsSuccess(a), "the body is not complete")
		},
	} {
		call(t, func(conn net.Conn) {
			skipRequest(conn)
			fmt.Fprintf(conn, "HTTP/1.1 %s\r\n", answer)
		}, func(t *testing.T, r webhook.Result, _ time.Duration) {
			want(t, r.Answer, domain.DecideRetry(p, r.Answer.Began, r.Answer.Ended(), 1, r.Answer))
		})
	}
}

// respondLate responds to each request after a pause.
func respondLate(after time.Duration, status int) func(net.Conn) {
	return func(conn net.Conn) {
		for skipRequest(conn) {
			<-time.After(after)
			if _, err := fmt.Fprintf(conn, "HTTP/1.1 %d x\r\nContent-Length: 2\r\n\r\nok", status); err != nil {
				return
			}
		}
	}
}

func TestALateAnswer_CountsUpToTheTimeout(t *testing.T) {
	for _, tc := range []struct {
		after  time.Duration
		status int
		want   int
	}{
		{15 * time.Second, 200, 200},
		{15 * time.Second, 500, 500},
		{30*time.Second - 1, 200, 200},
		{30*time.Second + 1, 200, 0},
		{time.Hour, 200, 0},
	} {
		call(t, respondLate(tc.after, tc.status), func(t *testing.T, r webhook.Result, took time.Duration) {
			require.Equal(t, tc.want, r.Answer.Status)
			require.Equal(t, min(tc.after, 30*time.Second), took)
			require.Equal(t, tc.want == 200, r.Answer.Error == "")
		})
	}
}

func TestAnAnswer_BecomesAnOutcomeWithAReason(t *testing.T) {
	for _, tc := range []struct {
		answer     string
		status     int
		reason     string
		retryAfter time.Duration
	}{
		{"HTTP/1.1 200 OK\r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n", 200, "", 0},
		{"HTTP/1.1 204 OK\r\n\r\n", 204, "", 0},
		{"HTTP/1.1 299 OK\r\nContent-Length: 1\r\n\r\nx", 299, "", 0},
		{"HTTP/1.1 301 x\r\nLocation: http://169.254.169.254/metadata\r\nContent-Length: 0\r\n\r\n", 301, "register the URL", 0},
		{"HTTP/1.1 307 x\r\nLocation: http://other.example/\r\nContent-Length: 0\r\n\r\n", 307, "register the URL", 0},
		{"HTTP/1.1 308 x\r\nLocation: http://receiver.example/\r\nContent-Length: 0\r\n\r\n", 308, "register the URL", 0},
		{"HTTP/1.1 101 x\r\nUpgrade: y\r\nConnection: Upgrade\r\n\r\n", 101, "answer with 2xx", 0},
		{"HTTP/1.1 400 x\r\nContent-Length: 0\r\n\r\n", 400, "refused the message (400)", 0},
		{"HTTP/1.1 401 x\r\nContent-Length: 0\r\n\r\n", 401, "current secret", 0},
		{"HTTP/1.1 404 x\r\nContent-Length: 0\r\n\r\n", 404, "correct the URL", 0},
		{"HTTP/1.1 410 x\r\nContent-Length: 4\r\n\r\nhush", 410, "wants no more", 0},
		{"HTTP/1.1 429 x\r\nContent-Length: 0\r\n\r\n", 429, "too often", 0},
		{"HTTP/1.1 429 x\r\nRetry-After: 144000\r\nContent-Length: 0\r\n\r\n", 429, "too often", 40 * time.Hour},
		{"HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n", 500, "receiver failed (500)", 0},
		{"HTTP/1.1 999 x\r\nContent-Length: 0\r\n\r\n", 999, "no success", 0},
		{"", 0, "look at the receiver's log", 0},
		{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx", 0, "look at the receiver's log", 0},
		{"SSH-2.0-OpenSSH_9.9\r\n", 0, "not HTTP", 0},
		{"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 1<<20), 0, "bytes of headers", 0},
	} {
		t.Run(tc.answer[:min(len(tc.answer), 60)], func(t *testing.T) {
			call(t, func(conn net.Conn) {
				skipRequest(conn)
				fmt.Fprint(conn, tc.answer)
			}, func(t *testing.T, r webhook.Result, took time.Duration) {
				require.Zero(t, took)
				require.Equal(t, tc.status, r.Answer.Status)
				require.Contains(t, r.Answer.Error, tc.reason)
				require.Equal(t, tc.reason == "", r.Answer.Error == "")
				require.Equal(t, tc.retryAfter, r.Answer.RetryAfter)
			})
		})
	}
}

func TestARedirect_IsNotFollowed(t *testing.T) {
	n := newNetwork(t)
	n.add("receiver.example", "8.8.8.8", respondWith("HTTP/1.1 307 x\r\nLocation: http://other.example/\r\nContent-Length: 0\r\n\r\n"))
	n.add("other.example", "9.9.9.9", respondWith("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
	c := n.client(webhook.Options{})
	require.Equal(t, http.StatusTemporaryRedirect, send(t, c, delivery("http://receiver.example/")).Answer.Status)
	require.Equal(t, []string{"8.8.8.8:80"}, n.dials)
}

// A host had a public address when its subscription was created, and now has a private one. It is
// not called.
func TestARebinding_IsNotDialed(t *testing.T) {
	n := newNetwork(t)
	n.add("receiver.example", "8.8.8.8", respondWith("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"))
	c := n.client(webhook.Options{})
	d := delivery("http://receiver.example/")
	require.NoError(t, c.CheckURL(t.Context(), d.Settings.CallbackURL))
	for _, a := range append(specialAddresses, "::ffff:127.0.0.1") {
		n.hosts["receiver.example"] = []netip.Addr{netip.MustParseAddr(a)}
		if a == "::ffff:8.8.8.8" {
			continue // this text denotes the public address, too
		}
		r := send(t, c, d)
		require.Zero(t, r.Answer.Status, a)
		require.Contains(t, r.Answer.Error, "may not be called", a)
		require.NotContains(t, r.Answer.Error, a)
	}
	require.Empty(t, n.dials)

	n.hosts["receiver.example"] = []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("::ffff:8.8.8.8")}
	require.Equal(t, 200, send(t, c, d).Answer.Status)
	require.Equal(t, []string{"8.8.8.8:80"}, n.dials, "only what may be called")
}

// A stored URL that may no longer be called is refused, because each call checks its URL again.
func TestAURL_IsCheckedAgainAtEachCall(t *testing.T) {
	n := newNetwork(t)
	c := webhook.New(webhook.Options{Dial: n.dial, LookUp: n.lookUp})
	defer c.Close()
	for url, reason := range map[string]string{
		"http://receiver.example/?token=hush":     "want https",
		"https://me:hush@receiver.example/":       "want no credentials",
		"https://127.0.0.1/hush":                  "may not be called",
		"https://[::ffff:169.254.169.254]/hush":   "may not be called",
		"https://unknown.example/hush":            "check its DNS records",
		"https://receiver.example:99999/hush":     "want a port",
		"ftp://receiver.example/hush":             "want http or https",
		"https://" + strings.Repeat("hush.", 999): "want at most",
	} {
		r := send(t, c, delivery(url))
		require.Contains(t, r.Answer.Error, reason)
		require.Zero(t, r.Answer.Status)
		require.NotContains(t, r.Answer.Error, "hush")
	}
	require.Empty(t, n.dials)
}

func TestARefusedConnection_IsReported(t *testing.T) {
	n := newNetwork(t)
	n.hosts["receiver.example"] = []netip.Addr{netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("9.9.9.9")}
	c := n.client(webhook.Options{})
	r := send(t, c, delivery("http://receiver.example/"))
	require.Contains(t, r.Answer.Error, "the connection was refused")
	require.Len(t, n.dials, 2, "each address is tried")
}

func TestAnAddressThatDoesNotAnswer_LeavesTimeForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.add("receiver.example", "8.8.8.8", nil)
		n.hosts["receiver.example"] = append(n.hosts["receiver.example"], netip.MustParseAddr("9.9.9.9"))
		n.serve["9.9.9.9:80"] = respondWith("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		c := n.client(webhook.Options{Timeout: 30 * time.Second})
		r := send(t, c, delivery("http://receiver.example/"))
		require.Equal(t, 200, r.Answer.Status)
		require.Equal(t, 15*time.Second, r.Answer.Took)
		c.Close()
	})
}

func TestANetworkFailure_HasAReasonWithARemedy(t *testing.T) {
	op := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for _, tc := range []struct {
		lookUp, dial error
		addresses    []netip.Addr
		reason       string
	}{
		{lookUp: &net.DNSError{Err: "no answer", IsTemporary: true}, reason: "could not be looked up"},
		{lookUp: &net.DNSError{Err: "i/o timeout", IsTimeout: true}, reason: "could not be looked up"},
		{lookUp: &net.DNSError{Err: "no such host", IsNotFound: true}, reason: "check its DNS records"},
		{addresses: []netip.Addr{}, reason: "check its DNS records"},
		{dial: op(syscall.ECONNREFUSED), reason: "start the receiver"},
		{dial: op(syscall.EHOSTUNREACH), reason: "cannot be reached"},
		{dial: op(syscall.ENETUNREACH), reason: "cannot be reached"},
		{dial: op(syscall.ETIMEDOUT), reason: "no connection within 30s"},
		{dial: op(syscall.EMFILE), reason: "no connection; check"},
		{dial: errors.New("broken"), reason: "before an answer came"},
	} {
		c := webhook.New(webhook.Options{
			LookUp: func(context.Context, string) ([]netip.Addr, error) {
				if tc.addresses == nil {
					return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, tc.lookUp
				}
				return tc.addresses, nil
			},
			Dial: func(context.Context, string, string) (net.Conn, error) { return nil, tc.dial },
		})
		r := send(t, c, delivery("https://receiver.example/hush"))
		require.Zero(t, r.Answer.Status)
		require.Contains(t, r.Answer.Error, tc.reason)
		c.Close()
	}
}

func TestAnAnswerThatBreaks_IsAFailedAttempt(t *testing.T) {
	for _, n := range []int{1, webhook.MaxBody - 1, webhook.MaxBody, 20_000} {
		call(t, func(conn net.Conn) {
			skipRequest(conn)
			fmt.Fprintf(conn, "HTTP/1.1 200 x\r\nContent-Length: 30000\r\n\r\n%s", strings.Repeat("x", n))
		}, func(t *testing.T, r webhook.Result, _ time.Duration) {
			require.Zero(t, r.Answer.Status)
			require.Contains(t, r.Answer.Error, "look at the receiver's log")
		})
	}
}
