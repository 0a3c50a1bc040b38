package certify_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/certify"
	"github.com/messagehub/messagehub/domain"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// A pipeListener accepts in-memory connections.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(8, 8, 8, 8), Port: 80} }

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), near.Close(), far.Close())
	case <-l.done:
		return nil, errors.Join(net.ErrClosed, near.Close(), far.Close())
	}
}

// run certifies a receiver in a synctest bubble, which has a fake clock.
func run(t *testing.T, handler http.Handler, set func(*certify.Options)) []certify.Result {
	t.Helper()
	var results []certify.Result
	synctest.Test(t, func(t *testing.T) {
		l := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
		server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(l) }()
		s, err := webhook.ParseSecret(secret)
		require.NoError(t, err)
		o := certify.Options{
			Client: webhook.Options{
				AllowHTTP: true, Timeout: 30 * time.Second, Dial: l.dial,
				LookUp: func(context.Context, string) ([]netip.Addr, error) {
					return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
				},
			},
			Settings: domain.Subscription{CallbackURL: "http://receiver.example/hook"},
			Secrets:  []webhook.Secret{s},
		}
		if set != nil {
			set(&o)
		}
		var reported []certify.Result
		o.Report = func(r certify.Result) { reported = append(reported, r) }
		results, err = certify.Run(t.Context(), o)
		require.NoError(t, err)
		require.Equal(t, results, reported)
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
	return results
}

// correctReceiver returns a handler without faults, which verifies calls with v
// and refuses them with the status refusal.
func correctReceiver(v *webhook.Verifier, refusal int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if _, err := v.Verify(r.Header, body, time.Now()); err != nil {
			w.WriteHeader(refusal)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

func bySecret(t *testing.T) *webhook.Verifier {
	t.Helper()
	key, err := webhook.ParseVerifyKey(secret)
	require.NoError(t, err)
	return &webhook.Verifier{Keys: []webhook.VerifyKey{key}}
}

// checksWith returns the names of the checks whose outcome is o.
func checksWith(results []certify.Result, o certify.Outcome) []string {
	names := []string{}
	for _, r := range results {
		if r.Outcome == o {
			names = append(names, r.Check)
		}
	}
	return names
}

func TestRun_PassesACorrectReceiver(t *testing.T) {
	results := run(t, correctReceiver(bySecret(t), http.StatusUnauthorized), nil)
	require.Equal(t, []string{"is called by HTTPS"}, checksWith(results, certify.Failed), "%v", results)
	require.Equal(t, []string{"refuses a changed body with its digest"}, checksWith(results, certify.NotChecked))
	require.False(t, certify.HasFailed(results))
}

func TestRun_PassesCorrectReceiversOfOtherSchemes(t *testing.T) {
	pair, err := webhook.ParseSecret("whsk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		v    *webhook.Verifier
		set  func(*certify.Options)
		skip []string
	}{
		"key pair": {
			&webhook.Verifier{Keys: []webhook.VerifyKey{pair.VerifyKey()}},
			func(o *certify.Options) { o.Secrets = []webhook.Secret{pair} },
			[]string{"refuses a changed body with its digest"},
		},
		"HMAC": {
			&webhook.Verifier{HMACKeys: []webhook.Key{"hush"}},
			func(o *certify.Options) { o.Secrets, o.HMACKey = nil, "hush" },
			[]string{"accepts one valid signature of several", "ignores signatures of unknown versions", "refuses a changed id"},
		},
		"form": {
			bySecret(t),
			func(o *certify.Options) { o.Settings.Encoding, o.Settings.Method = domain.FormEncoding, http.MethodPut },
			[]string{"refuses a changed body with its digest"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			results := run(t, correctReceiver(tc.v, http.StatusUnauthorized), tc.set)
			require.Equal(t, []string{"is called by HTTPS"}, checksWith(results, certify.Failed), "%v", results)
			require.Equal(t, tc.skip, checksWith(results, certify.NotChecked))
		})
	}
}

// newFaultyReceiver returns a receiver that passes each call to f. If f returns
// false, a correct receiver answers the call.
func newFaultyReceiver(t *testing.T, f func(w http.ResponseWriter, r *http.Request, body []byte) bool) http.Handler {
	t.Helper()
	right := correctReceiver(bySecret(t), http.StatusUnauthorized)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || f(w, r, body) {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		right(w, r)
	})
}

func TestRun_FindsEachFault(t *testing.T) {
	answer := func(w http.ResponseWriter, status int) bool { w.WriteHeader(status); return true }
	seen := make(map[string]bool)
	var mu sync.Mutex
	under := 0
	var hasCrashed atomic.Bool
	verify := func(w http.ResponseWriter, r *http.Request, body []byte, change func(http.Header, *[]byte)) bool {
		h := r.Header.Clone()
		change(h, &body)
		if _, err := bySecret(t).Verify(h, body, time.Now()); err == nil {
			return answer(w, http.StatusOK)
		}
		return false
	}
	refusals := []string{
		"refuses a call without a signature", "refuses a changed body", "refuses a changed id", "refuses a signature by another secret",
		"refuses a signature that cannot be read", "refuses a call that is an hour old", "refuses a call of an hour ahead", "refuses with 400, 401 or 403",
	}
	for name, tc := range map[string]struct {
		fault func(w http.ResponseWriter, r *http.Request, body []byte) bool
		want  []string
	}{
		"verifies nothing": {func(w http.ResponseWriter, _ *http.Request, _ []byte) bool { return answer(w, 200) }, refusals},
		"refuses repeats": {func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			mu.Lock()
			defer mu.Unlock()
			id := r.Header.Get("Webhook-Id")
			defer func() { seen[id] = true }()
			return seen[id] && answer(w, http.StatusConflict)
		}, []string{"accepts the same id again"}},
		"refuses unknown headers": {func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			return r.Header.Get("X-Unknown-To-Receivers") != "" && answer(w, 400)
		}, []string{"ignores a header that it does not know"}},
		"refuses unknown members": {func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
			return bytes.Contains(body, []byte("unknowntoreceivers")) && answer(w, 400)
		}, []string{"ignores a member that it does not know"}},
		"refuses large bodies": {func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
			return len(body) > 100<<10 && answer(w, 413)
		}, []string{"accepts a large body"}},
		"one call at a time": {func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			mu.Lock()
			under++
			n := under
			mu.Unlock()
			<-time.After(time.Second)
			mu.Lock()
			under-- // decremented before the answer is sent, so the next call cannot count this one
			mu.Unlock()
			return n > 1 && answer(w, 503)
		}, []string{"accepts calls at the same time"}},
		"is slow": {func(http.ResponseWriter, *http.Request, []byte) bool { <-time.After(5 * time.Second); return false }, []string{"answers quickly"}},
		"has long answers": {func(w http.ResponseWriter, r *http.Request, body []byte) bool {
			if _, err := bySecret(t).Verify(r.Header, body, time.Now()); err != nil {
				return false
			}
			_, _ = w.Write(bytes.Repeat([]byte("x"), 20<<10))
			return true
		}, []string{"answers with a short body"}},
		"knows one signature": {func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			return strings.Contains(r.Header.Get("Webhook-Signature"), " ") && answer(w, 401)
		}, []string{"accepts one valid signature of several", "ignores signatures of unknown versions"}},
		"knows no other version": {func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			return strings.HasPrefix(r.Header.Get("Webhook-Signature"), "v9,") && answer(w, 500)
		}, []string{"ignores signatures of unknown versions"}},
		"verifies only if there is a signature": {func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			return r.Header.Get("Webhook-Signature") == "" && answer(w, 200)
		}, []string{"refuses a call without a signature"}},
		"verifies no body": {func(w http.ResponseWriter, r *http.Request, body []byte) bool {
			return verify(w, r, body, func(_ http.Header, b *[]byte) { *b = bytes.ReplaceAll(*b, []byte("tampered"), []byte("original")) })
		}, []string{"refuses a changed body"}},
		"verifies no id": {func(w http.ResponseWriter, r *http.Request, body []byte) bool {
			return verify(w, r, body, func(h http.Header, _ *[]byte) { h.Set("Webhook-Id", h.Get("Webhook-Id")[:len("msg_certify")+32]) })
		}, []string{"refuses a changed id"}},
		"fails at what it cannot read": {func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			return strings.Contains(r.Header.Get("Webhook-Signature"), "***") && answer(w, 500)
		}, []string{"refuses with 400, 401 or 403"}},
		"crashes at what it cannot read": {func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
			if strings.Contains(r.Header.Get("Webhook-Signature"), "***") {
				hasCrashed.Store(true)
			}
			if hasCrashed.Load() {
				panic(http.ErrAbortHandler)
			}
			return false
		}, []string{"refuses a signature that cannot be read", "refuses a call that is an hour old", "refuses a call of an hour ahead", "works after calls that break off"}},
	} {
		t.Run(name, func(t *testing.T) {
			results := run(t, newFaultyReceiver(t, tc.fault), nil)
			failed := slices.DeleteFunc(checksWith(results, certify.Failed), func(name string) bool { return name == "is called by HTTPS" })
			require.Equal(t, tc.want, failed, "%v", results)
			for _, r := range results {
				require.Equal(t, r.Outcome == certify.Failed, r.Advice != "", r.Check)
			}
		})
	}
}

func TestRun_DetectsThatOldCallsAreAccepted(t *testing.T) {
	v := bySecret(t)
	v.Tolerance = 24 * time.Hour
	results := run(t, correctReceiver(v, http.StatusUnauthorized), nil)
	require.Subset(t, checksWith(results, certify.Failed), []string{"refuses a call that is an hour old", "refuses a call of an hour ahead"})
	require.True(t, certify.HasFailed(results))
}

func TestRun_FindsADigestThatIsNotSigned(t *testing.T) {
	hmac := &webhook.Verifier{HMACKeys: []webhook.Key{"hush"}}
	set := func(o *certify.Options) { o.Secrets, o.HMACKey = nil, "hush" }
	signsAnything := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, err := hmac.Verify(r.Header, body, time.Now())
		if err != nil && !strings.Contains(err.Error(), "the signature in Authorization is not valid") {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	require.Subset(t, checksWith(run(t, signsAnything, set), certify.Failed), []string{"refuses a changed body with its digest"})
}

func TestRun_StopsAtAReceiverThatAcceptsNothing(t *testing.T) {
	for status, advice := range map[int]string{
		401: "Compare the secret of the receiver", 307: "The receiver redirects (307)", 404: "The receiver has no such resource (404)", 410: "The receiver wants no more messages (410).",
	} {
		results := run(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://169.254.169.254/")
			w.WriteHeader(status)
		}), nil)
		require.Contains(t, results[0].Advice, advice)
		require.Equal(t, certify.Failed, results[0].Outcome)
		require.Equal(t, status == 307, results[1].Outcome == certify.Failed)
		for _, r := range results[3:] {
			require.Equal(t, certify.NotChecked, r.Outcome, r.Check)
		}
		require.True(t, certify.HasFailed(results))
	}
	results := run(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }), func(o *certify.Options) { o.Secrets = nil })
	require.Contains(t, results[0].Advice, "give the secret")
}

func TestRun_HasADeadlineForAReceiverThatHangs(t *testing.T) {
	results := run(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server notices the disconnect only after it has read the body
		<-r.Context().Done()
	}), nil)
	require.Contains(t, results[0].Answer, "no complete answer within 30s")
	require.Equal(t, "there was no answer", results[1].Answer)
}

func TestRun_ReportsThatSignaturesAreNotChecked(t *testing.T) {
	var b strings.Builder
	accepts := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	results := run(t, accepts, func(o *certify.Options) { o.Secrets = nil })
	require.False(t, certify.HasFailed(results))
	require.NoError(t, certify.Print(&b, "x", results))
	require.Contains(t, b.String(), "\nThe receiver accepts calls without a signature,")
	b.Reset()
	require.NoError(t, certify.Print(&b, "x", run(t, correctReceiver(bySecret(t), http.StatusUnauthorized), nil)))
	require.NotContains(t, b.String(), "without a signature,")
}

func TestRun_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	results, err := certify.Run(ctx, certify.Options{Settings: domain.Subscription{CallbackURL: "https://8.8.8.8/"}})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, results)
}

func TestPrint_ShowsATableAndWhatToDo(t *testing.T) {
	var b strings.Builder
	results := run(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }), nil)
	require.NoError(t, certify.Print(&b, "http://receiver.example/", results))
	require.Equal(t, `http://receiver.example/

THE RECEIVER                LEVEL   RESULT  ANSWER
accepts a call              must    FAILED  403 in 1ms
answers without a redirect  must    ok      403 in 1ms
is called by HTTPS          should  FAILED  http

1 ok, 2 failed (1 of them a must), 20 not checked

What to do

- accepts a call
    Compare the secret of the receiver with the one given here. If they are the same, verify the raw
    body, not JSON that was read and written again.

- is called by HTTPS
    Serve HTTPS. By HTTP others can read the messages, and most hubs do not call.
`, b.String())
	for line := range strings.Lines(b.String()) {
		require.LessOrEqual(t, len(line), 101)
	}
	b.Reset()
	require.NoError(t, certify.Print(&b, "x", []certify.Result{
		{"a", certify.Must, certify.Failed, "1\x1b", "Do this."},
		{"b", certify.Should, certify.Failed, strings.Repeat("2", 100), "Do that."},
		{"c", certify.Must, certify.Failed, "3", "Do this."},
	}))
	require.Contains(t, b.String(), "1?\n")
	require.Contains(t, b.String(), "\n- a\n- c\n    Do this.\n\n- b\n    Do that.\n")
}
