// Package certify calls a receiver as a hub would, and as an attacker would,
// and reports which calls the receiver handled correctly.
//
// Every call uses the guarded client of package webhook. A check consists of
// one or more calls, and a rule for the responses. The first check sends a
// valid call. If the receiver does not accept it, most checks are skipped,
// because their results would be meaningless.
package certify

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
	"github.com/messagehub/messagehub/domain"
)

// Options configure Run.
type Options struct {
	Client   webhook.Options // options of the client that calls the receiver
	Settings domain.Subscription

	Secrets []webhook.Secret // the receiver's secrets; signatures are checked only if Secrets or HMACKey is set
	HMACKey webhook.Key      // the receiver's HMAC key; "" if it has none

	Type    string // event type; default "messagehub.certify"
	Payload []byte // JSON payload of the events; default an object with the name of the check

	Large  int           // size of the large payload, in bytes; default domain.MaxPayload
	Slow   time.Duration // duration of the slow body; default 3 s
	Quick  time.Duration // longest duration of a quick answer; default 2 s
	Calls  int           // number of concurrent calls; default 10
	Report func(Result)  // called with each result, unless nil

	Random io.Reader                                        // random source for ids and secrets; default crypto/rand
	Pause  func(ctx context.Context, d time.Duration) error // waits for d; by default in real time
}

// A Level is the severity of a failed check.
type Level string

// The levels.
const (
	Must   Level = "must"   // a receiver that fails the check loses messages, or accepts forged ones
	Should Level = "should" // a receiver that fails the check works, but not as well as it could
)

// An Outcome is the result of a check.
type Outcome string

// The outcomes.
const (
	Passed     Outcome = "ok"
	Failed     Outcome = "failed"
	NotChecked Outcome = "not checked"
)

// A Result is the outcome of one check, with an explanation.
type Result struct {
	Check   string  `json:"check"`
	Level   Level   `json:"level"`
	Outcome Outcome `json:"outcome"`
	Answer  string  `json:"answer"`           // how the receiver answered, or why the check was skipped
	Advice  string  `json:"advice,omitempty"` // next step after a failure
}

// Run calls the receiver and returns the results of all checks, in the order in
// which they ran. It fails only if ctx ends, or if Random fails.
func Run(ctx context.Context, opts Options) ([]Result, error) {
	opts.Type = cmp.Or(opts.Type, "messagehub.certify")
	opts.Large = cmp.Or(opts.Large, domain.MaxPayload)
	opts.Slow = cmp.Or(opts.Slow, 3*time.Second)
	opts.Quick = cmp.Or(opts.Quick, 2*time.Second)
	opts.Calls = cmp.Or(opts.Calls, 10)
	opts.Random = cmp.Or[io.Reader](opts.Random, rand.Reader)
	if opts.Report == nil {
		opts.Report = func(Result) {}
	}
	if opts.Pause == nil {
		opts.Pause = clock.Sleep
	}
	if opts.Client.Clock == nil {
		opts.Client.Clock = time.Now
	}
	opts.Settings.SetDefaults()
	s := &certifyRun{opts: opts, client: webhook.New(opts.Client)}
	defer s.client.Close()
	results := make([]Result, 0, len(checks))
	for i := range checks {
		r, err := s.check(ctx, &checks[i])
		if err != nil {
			return results, err
		}
		opts.Report(r)
		results = append(results, r)
	}
	return results, nil
}

// A certifyRun is the state of one call of Run.
type certifyRun struct {
	opts   Options
	client *webhook.Client

	first   receiverAnswer // answer to the first check's call
	refused []receiverAnswer
	slowest time.Duration // duration of the slowest accepted call
}

// notAccepted is the reason for skipping most checks if the first check fails.
const notAccepted = "a call that should be accepted was not"

// check runs or skips a check, and returns its result.
func (s *certifyRun) check(ctx context.Context, c *check) (Result, error) {
	r := Result{Check: c.name, Level: c.level, Outcome: NotChecked}
	switch {
	case s.first.made && !s.first.isAccepted() && !c.always:
		r.Answer = notAccepted
		return r, nil
	case c.skip != nil && c.skip(s) != "":
		r.Answer = c.skip(s)
		return r, nil
	}
	v, err := c.run(ctx, s)
	if err != nil {
		return r, err
	}
	r.Outcome, r.Answer = Passed, v.saw
	if !v.isRight {
		r.Outcome, r.Advice = Failed, cmp.Or(v.advice, c.advice)
	}
	return r, nil
}

// isSigned reports whether the receiver can verify signatures.
func (s *certifyRun) isSigned() bool { return len(s.opts.Secrets) > 0 || s.opts.HMACKey != "" }

// A receiverAnswer is the result of a call to the receiver.
type receiverAnswer struct {
	domain.Answer
	made bool
	long bool // the body may be longer than the part that was read
}

func (a receiverAnswer) isAccepted() bool { return a.made && a.Error == "" && a.Status/100 == 2 }

// isRefused reports whether the receiver answered with a status other than 2xx.
// It is false if the receiver did not answer.
func (a receiverAnswer) isRefused() bool { return a.made && a.Status != 0 && a.Status/100 != 2 }

func (a receiverAnswer) String() string {
	if a.Status == 0 {
		return a.Error
	}
	return fmt.Sprintf("%d in %s", a.Status, roundToMilliseconds(a.Took))
}

func roundToMilliseconds(d time.Duration) time.Duration {
	return max(d.Round(time.Millisecond), time.Millisecond)
}

// delivery returns a delivery with a new id.
func (s *certifyRun) delivery() (*webhook.Delivery, error) {
	id, err := s.random(16)
	if err != nil {
		return nil, err
	}
	name := "msg_certify" + hex.EncodeToString(id)
	payload := s.opts.Payload
	if payload == nil {
		payload = []byte(`{"note":"` + original + `"}`)
	}
	return &webhook.Delivery{
		ID: name, Subscription: certifySubscription, Settings: &s.opts.Settings, Secrets: s.opts.Secrets, HMACKey: s.opts.HMACKey,
		Message: &domain.Message{
			ID: name, ContentType: domain.JSONEncoding, Payload: payload,
			Attributes: map[string]string{
				"specversion": "1.0", "type": s.opts.Type, "source": "/messagehub/certify", "subject": original,
				"time": s.opts.Client.Clock().UTC().Format(time.RFC3339),
			},
		},
	}, nil
}

const (
	certifySubscription = "00000000-0000-4000-8000-000000000000"

	// Each body contains original, which an attacker replaces by tampered.
	original, tampered = "original", "tampered"
)

func (s *certifyRun) random(n int) ([]byte, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(s.opts.Random, b); err != nil {
		return nil, fmt.Errorf("read randomness: %w", err)
	}
	return b, nil
}

// otherSecret returns a random secret of the same kind as the receiver's first
// secret. The receiver does not know it.
func (s *certifyRun) otherSecret() (webhook.Secret, error) {
	b, err := s.random(32)
	if err != nil {
		return webhook.Secret{}, err
	}
	prefix := "whsec_"
	if len(s.opts.Secrets) > 0 && s.opts.Secrets[0].PublicKey() != "" {
		prefix = "whsk_"
	}
	return webhook.ParseSecret(prefix + base64.StdEncoding.EncodeToString(b))
}

// send signs a delivery with client, applies alter to the signed request, and
// sends it.
func (s *certifyRun) send(ctx context.Context, client *webhook.Client, d *webhook.Delivery, alter ...func(*http.Request)) (receiverAnswer, error) {
	r, err := client.SendAltered(ctx, d, func(req *http.Request) {
		for _, f := range alter {
			f(req)
		}
	})
	if err != nil {
		return receiverAnswer{}, err
	}
	a := receiverAnswer{Answer: r.Answer, made: true, long: len(r.Body) >= webhook.MaxBody}
	if a.isAccepted() {
		s.slowest = max(s.slowest, a.Took)
	}
	return a, nil
}
