package receiver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/receiver"
	"github.com/messagehub/messagehub/domain"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	other  = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
)

func newVerifier(t *testing.T, text string) webhook.Verifier {
	t.Helper()
	key, err := webhook.ParseVerifyKey(text)
	require.NoError(t, err)
	return webhook.Verifier{Keys: []webhook.VerifyKey{key}}
}

// A runningReceiver is a receiver on a loopback address, with a client that
// calls it as a hub would.
type runningReceiver struct {
	*receiver.Receiver
	url  string
	out  *bytes.Buffer // output of the receiver; must be read only after stop
	stop func()
	hub  *webhook.Client
}

func serveReceiver(t *testing.T, opts receiver.Options) *runningReceiver {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &runningReceiver{url: "http://" + listener.Addr().String() + "/hook", out: new(bytes.Buffer)}
	opts.Out = s.out
	s.Receiver = receiver.New(opts)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener) }()
	stopped := false
	s.stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(t, <-ended)
		}
	}
	t.Cleanup(s.stop)
	s.hub = webhook.New(webhook.Options{AllowHTTP: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	t.Cleanup(s.hub.Close)
	return s
}

func (s *runningReceiver) call(t *testing.T, id string, alter func(*http.Request)) domain.Answer {
	t.Helper()
	settings := &domain.Subscription{CallbackURL: s.url}
	settings.SetDefaults()
	key, err := webhook.ParseSecret(secret)
	require.NoError(t, err)
	if alter == nil {
		alter = func(*http.Request) {}
	}
	r, err := s.hub.SendAltered(t.Context(), &webhook.Delivery{
		ID: id, Subscription: "s-1", Settings: settings, Secrets: []webhook.Secret{key}, Attempts: 2,
		Message: &domain.Message{ID: "e-1", Attributes: map[string]string{"type": "t"}, ContentType: "application/json", Payload: []byte(`{"n":1}`)},
	}, alter)
	require.NoError(t, err)
	return r.Answer
}

func TestReceiver_PrintsCallsVerifiedAndNot(t *testing.T) {
	s := serveReceiver(t, receiver.Options{Verifier: newVerifier(t, secret), Clock: func() time.Time { return time.Now().Truncate(time.Second) }})
	require.Equal(t, 200, s.call(t, "msg_1", nil).Status)
	require.Equal(t, 200, s.call(t, "msg_1", nil).Status)
	require.Equal(t, 401, s.call(t, "msg_2", func(r *http.Request) { r.Header.Set("Webhook-Id", "msg_3") }).Status)
	require.Equal(t, receiver.Counts{Calls: 3, Verified: 2, Refused: 1, Repeated: 1}, s.Counts())
	require.Equal(t, "3 calls, 2 verified, 1 refused, 1 repeated", s.Counts().String())
	s.stop()
	calls := strings.Split(strings.TrimSpace(s.out.String()), "\n\n")
	require.Len(t, calls, 3)
	lines := strings.Split(calls[0], "\n")
	require.Len(t, lines, 7)
	require.Regexp(t, `^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z  POST /hook  answered 200$`, lines[0])
	require.Equal(t, "  webhook-id           msg_1", lines[1])
	require.Regexp(t, `^  webhook-timestamp    \d{10}$`, lines[2])
	require.Equal(t, "  x-dss-notify-attempt 2", lines[3])
	require.Equal(t, "  verified             yes, v1", lines[4])
	require.Regexp(t, `^  body                 application/json, \d+ bytes$`, lines[5])
	require.Regexp(t, `^    \{"transaction_id":"msg_1",.*\}$`, lines[6])
	require.Contains(t, calls[1], "\n  repeated             call 2 with this id\n")
	require.Contains(t, calls[2], "answered 401\n")
	require.Contains(t, calls[2], "\n  verified             NO: none of its signatures is valid; it was changed, or signed with another secret\n")
}

func TestReceiver_RefusesCallsOfAnotherSecret(t *testing.T) {
	s := serveReceiver(t, receiver.Options{Verifier: newVerifier(t, other)})
	require.Equal(t, 401, s.call(t, "msg_1", nil).Status)
}

func TestReceiver_AnswersAsConfigured(t *testing.T) {
	s := serveReceiver(t, receiver.Options{Status: 503, RetryAfter: 1500 * time.Millisecond})
	answer := s.call(t, "msg_1", nil)
	require.Equal(t, 503, answer.Status)
	require.Equal(t, 2*time.Second, answer.RetryAfter)
	s.stop()
	require.Contains(t, s.out.String(), "verified             not checked: no --secret, --hmac-key or --consumer-token is given")
}

func TestReceiver_FailsTheFirstCallsOfEachMessage(t *testing.T) {
	s := serveReceiver(t, receiver.Options{Status: 503, Failures: 2, RetryAfter: time.Second})
	var got []int
	for _, id := range []string{"msg_1", "msg_1", "msg_2", "msg_1", "msg_2", "msg_2"} {
		a := s.call(t, id, nil)
		got = append(got, a.Status)
		require.Equal(t, a.Status == 503, a.RetryAfter > 0)
	}
	require.Equal(t, []int{503, 503, 503, 200, 503, 200}, got)
}

func TestReceiver_WaitsBeforeItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := receiver.New(receiver.Options{Delay: 20 * time.Second, Out: io.Discard})
		began := time.Now()
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("x")))
		require.Equal(t, 20*time.Second, time.Since(began))
		require.Equal(t, 200, w.Code)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader("x")).WithContext(ctx))
		require.Equal(t, 21*time.Second, time.Since(began), "a caller that is gone is not waited for")
	})
}

func TestReceiver_LimitsBodies(t *testing.T) {
	s := serveReceiver(t, receiver.Options{MaxBody: 100})
	require.Equal(t, 413, s.call(t, "msg_1", nil).Status)
	require.Equal(t, receiver.Counts{Calls: 1, Refused: 1}, s.Counts())
	s.stop()
	require.Contains(t, s.out.String(), "NO: its body has more than 100 bytes")
}

func TestReceiver_LimitsConcurrentCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := receiver.New(receiver.Options{Delay: time.Minute, Out: io.Discard})
		codes := make(chan int, 40)
		for range 40 {
			go func() {
				w := httptest.NewRecorder()
				r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("x")))
				codes <- w.Code
			}()
		}
		count := make(map[int]int)
		for range 40 {
			count[<-codes]++
		}
		require.Equal(t, map[int]int{200: 32, 503: 8}, count)
	})
}

func TestReceiver_ReportsABodyThatEndsEarly(t *testing.T) {
	var out bytes.Buffer
	r := receiver.New(receiver.Options{Out: &out})
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", io.MultiReader(strings.NewReader("abc"), &failing{})))
	require.Equal(t, 408, w.Code)
	require.Contains(t, out.String(), "NO: its body is not complete: torn")
}

type failing struct{}

func (*failing) Read([]byte) (int, error) { return 0, errors.New("torn") }

// A call contains control characters in several places, and credentials. The
// receiver must print neither.
func TestReceiver_PrintsNoControlCharactersAndNoCredentials(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		r := receiver.New(receiver.Options{Out: &out, Headers: true, JSON: asJSON})
		req := httptest.NewRequest(http.MethodPost, "/a%1b", strings.NewReader("one\x1b[2J\ntwo\xff\r\n"+strings.Repeat("é", 1000)))
		req.Header.Set("X-Bad", "a\x1b]0;b\x07\u009b")
		req.Header.Set("Authorization", "Bearer hush")
		req.Header.Set("Cookie", "hush")
		req.Header.Set("Content-Type", strings.Repeat("x", 1000))
		r.ServeHTTP(httptest.NewRecorder(), req)
		require.NotContains(t, out.String(), "hush")
		require.Contains(t, out.String(), "Bearer ...")
		for _, c := range out.String() {
			require.True(t, c == '\n' || c >= ' ' && c != 0x7f && (c < 0x80 || c >= 0xa0), "%q", c)
		}
		if !asJSON {
			require.Contains(t, out.String(), "\n    one?[2J\n    two?\n    é")
			require.Contains(t, out.String(), "\n    … of 2014 bytes\n")
			require.Less(t, len(out.String()), 2500)
		}
	}
}

func TestReceiver_PrintsJSONLines(t *testing.T) {
	s := serveReceiver(t, receiver.Options{Verifier: newVerifier(t, secret), JSON: true, ShowBody: -1})
	s.call(t, "msg_1", nil)
	s.call(t, "msg_1", func(r *http.Request) { r.Header.Del("Webhook-Signature") })
	s.stop()
	lines := json.NewDecoder(s.out)
	var first, second struct {
		Method, Path, Problem, Body string
		Status, Number, Bytes       int
		Verified                    bool
		Schemes                     []string
		Headers                     map[string]string
	}
	require.NoError(t, lines.Decode(&first))
	require.NoError(t, lines.Decode(&second))
	require.Equal(t, "POST /hook 200 1 true [v1]", fmt.Sprint(first.Method, " ", first.Path, " ", first.Status, " ", first.Number, " ", first.Verified, " ", first.Schemes))
	require.Equal(t, "msg_1", first.Headers["webhook-id"])
	require.Empty(t, first.Body)
	require.Positive(t, first.Bytes)
	require.Equal(t, 401, second.Status)
	require.Equal(t, "it has no webhook-signature", second.Problem)
	require.NotNil(t, second.Schemes)
}

func TestReceiver_ForgetsOldIDs(t *testing.T) {
	r := receiver.New(receiver.Options{Out: io.Discard})
	call := func(id string) {
		req := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
		req.Header.Set("Webhook-Id", id)
		r.ServeHTTP(httptest.NewRecorder(), req)
	}
	for n := range 10_001 {
		call(fmt.Sprint("msg_", n))
	}
	call("msg_1")
	require.Equal(t, 1, r.Counts().Repeated)
	call("msg_0")
	require.Equal(t, 1, r.Counts().Repeated)
}
