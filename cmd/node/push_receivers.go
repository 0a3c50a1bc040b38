package node

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/filter"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository"
)

// A receivers returns the receivers of cursors that belong to subscriptions.
type receivers struct {
	definitions repository.Definitions
	streams     repository.Streams
	dequeues    *subscribe.Dequeues
	keys        *subscribe.Keyring
	policy      domain.Policy
	concurrency int
	clock       func() time.Time
	failures    prometheus.Counter // counts filters that could not be evaluated
}

func newReceivers(cfg *config.Config, streams repository.Streams, dequeues *subscribe.Dequeues, keys *subscribe.Keyring, clock func() time.Time, metrics prometheus.Registerer) *receivers {
	return &receivers{dequeues.Definitions, streams, dequeues, keys, policyOf(&cfg.Push), cfg.Push.Concurrency, clock, promauto.With(metrics).NewCounter(prometheus.CounterOpts{
		Name: "messagehub_push_filter_failures_total",
		Help: "Events that a subscription did not get because its filter failed on them.",
	})}
}

// A target contains what a call needs in addition to the subscription's
// settings.
type target struct {
	subscription string // subscription id, which the headers of calls contain
	stream       domain.StreamName
	attachments  filter.Attachments
	signers      []signer          // newest first
	headers      map[string]string // headers that the subscription's owner configured
}

// A signer is a secret or a key with which a subscription's calls are signed.
type signer struct {
	secret webhook.Secret // zero if key is used instead
	key    webhook.Key
	until  time.Time // when its use ends; zero for never
}

// signersAt returns the secrets and the key that sign a call at time now. Of
// several valid keys, it returns only the newest, because a call has only one
// Authorization header.
func (t *target) signersAt(now time.Time) (secrets []webhook.Secret, key webhook.Key) {
	for _, s := range t.signers {
		switch {
		case !s.until.IsZero() && !now.Before(s.until):
		case s.key == "":
			secrets = append(secrets, s.secret)
		case key == "":
			key = s.key
		}
	}
	return secrets, key
}

// Receiver implements [delivery.Receivers].
func (r *receivers) Receiver(ctx context.Context, cursor domain.CursorID, isCurrent bool) (delivery.Receiver, error) {
	id, err := domain.SubscriptionOf(cursor)
	if err != nil {
		return delivery.Receiver{}, err
	}
	read := r.definitions.Subscription
	if isCurrent {
		read = r.definitions.CurrentSubscription
	}
	d, err := read(ctx, id)
	if err != nil {
		return delivery.Receiver{}, err
	}
	if err := r.dequeues.Request(ctx, d); err != nil {
		return delivery.Receiver{}, err
	}
	if err := subscribe.ListSync(ctx, r.streams, d); err != nil {
		return delivery.Receiver{}, err
	}
	stream, err := d.Stream()
	if err != nil {
		return delivery.Receiver{}, err
	}
	matches, attachments, err := filter.CompileSubscription(&d.Subscription)
	if err != nil {
		return delivery.Receiver{}, err
	}
	t := &target{subscription: id.String(), stream: stream, attachments: attachments}
	if t.signers, err = r.signersOf(d); err != nil {
		return delivery.Receiver{}, err
	}
	if t.headers, err = r.headersOf(d); err != nil {
		return delivery.Receiver{}, err
	}
	found := delivery.Receiver{
		Subscription: d.Subscription, Policy: r.policy, IsPaused: d.Paused, Resumed: d.Resumed, Target: t,
		MaxRate: d.MaxRate, Concurrency: r.concurrency, IsOrdered: d.IsOrdered,
	}
	if d.MaxConcurrency > 0 {
		found.Concurrency = min(found.Concurrency, d.MaxConcurrency)
	}
	if d.IsSync {
		found.Policy.Attempts = 1 // a single attempt, because the sender waits for its outcome
	}
	if _, isData := stream.DataActor(); isData {
		// One concurrent call is sufficient: the next call also announces data
		// saved during this one.
		found.Concurrency, found.Policy = 1, dataPolicyOf(r.policy)
	}
	found.Compile = compileFilter
	if matches != nil {
		found.Matches = func(e *repository.Entry) bool {
			passes, err := matches.Matches(filter.MetadataOf(&e.Message))
			if err != nil {
				r.failures.Inc()
			}
			return passes
		}
	}
	return found, nil
}

// compileFilter compiles a replay's filter.
func compileFilter(text string) (func(*repository.Entry) bool, error) {
	expression, err := filter.Compile(text)
	if err != nil {
		return nil, err
	}
	return func(e *repository.Entry) bool {
		passes, err := expression.Matches(filter.MetadataOf(&e.Message))
		return passes && err == nil
	}, nil
}

// dataPolicyOf returns the policy for calls that announce data. After one
// failure, the circuit breaker stops calls for the duration of the second
// delay, because otherwise each Save would cause another failing call.
func dataPolicyOf(p domain.Policy) domain.Policy {
	p.BreakAfter, p.BreakFor = 1, p.First
	if len(p.Delays) > 1 {
		p.BreakFor = p.Delays[1]
	}
	return p
}

// signersOf returns the signers of a subscription, newest first.
func (r *receivers) signersOf(d *repository.Definition) ([]signer, error) {
	var all []signer
	for _, sealed := range []struct {
		secret string
		until  time.Time
	}{{d.Secret, time.Time{}}, {d.Previous, d.PreviousUntil}} {
		if sealed.secret == "" || !sealed.until.IsZero() && !r.clock().Before(sealed.until) {
			continue // the secret is no longer used, so its key may be missing
		}
		if r.keys == nil {
			return nil, domain.Errorf(domain.Unavailable, "the secret of subscription %s is sealed, and this node has no key; set push.secret-key", d.ID)
		}
		text, err := r.keys.Open(d.ID, d.Owner, sealed.secret)
		if err != nil {
			return nil, err
		}
		one := signer{key: webhook.Key(text), until: sealed.until}
		if isStandardSecret(text) {
			one.key = ""
			if one.secret, err = webhook.ParseSecret(text); err != nil {
				return nil, err
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// headersOf returns the headers that a subscription's owner configured.
func (r *receivers) headersOf(d *repository.Definition) (map[string]string, error) {
	if d.Headers != "" && r.keys == nil {
		return nil, domain.Errorf(domain.Unavailable, "the headers of subscription %s are sealed, and this node has no key; set push.secret-key", d.ID)
	}
	return r.keys.OpenHeaders(d)
}

// isStandardSecret reports whether a secret has a Standard Webhooks prefix. Any
// other secret is the HMAC key of the Authorization header.
func isStandardSecret(text string) bool {
	return strings.HasPrefix(text, "whsec_") || strings.HasPrefix(text, "whsk_")
}

// checkSecret rejects an invalid secret that has a Standard Webhooks prefix.
func checkSecret(text string) error {
	if !isStandardSecret(text) {
		return nil
	}
	_, err := webhook.ParseSecret(text)
	return err
}

// checkHeaders rejects headers that an owner may not set, such as Authorization
// if the hub sets it.
func checkHeaders(headers map[string]string, secret string) error {
	if err := webhook.CheckHeaders(headers); err != nil {
		return err
	}
	for name := range headers {
		if strings.EqualFold(name, "Authorization") && secret != "" && !isStandardSecret(secret) {
			return domain.Errorf(domain.Invalid, "/headers/%s: the hub sets it, with an HMAC by hmac_secret_key", name)
		}
	}
	return nil
}
