package certify

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/api/webhook"
)

// expectAccepted returns a check that signs a call, applies alter to it, and
// sends it. The check passes if the receiver accepts the call.
func expectAccepted(alter ...func(*http.Request)) func(context.Context, *certifyRun) (checkVerdict, error) {
	return func(ctx context.Context, s *certifyRun) (checkVerdict, error) {
		a, err := s.sendNew(ctx, s.client, nil, alter...)
		return checkVerdict{isRight: a.isAccepted(), saw: a.String()}, err
	}
}

// expectRefused returns a check that signs a call, applies alter to it, and
// sends it. The check passes if the receiver refuses the call.
func expectRefused(alter ...func(*http.Request)) func(context.Context, *certifyRun) (checkVerdict, error) {
	return func(ctx context.Context, s *certifyRun) (checkVerdict, error) {
		return s.mustRefuse(s.sendNew(ctx, s.client, nil, alter...))
	}
}

// expectRefusedAt returns a check that sends a call whose signed time differs by
// offset from the current time. The receiver must refuse the call.
func expectRefusedAt(offset time.Duration) func(context.Context, *certifyRun) (checkVerdict, error) {
	return func(ctx context.Context, s *certifyRun) (checkVerdict, error) {
		o := s.opts.Client
		now := o.Clock
		o.Clock = func() time.Time { return now().Add(offset) }
		client := webhook.New(o)
		defer client.Close()
		return s.mustRefuse(s.sendNew(ctx, client, nil))
	}
}

func (s *certifyRun) mustRefuse(a receiverAnswer, err error) (checkVerdict, error) {
	v := checkVerdict{isRight: a.isRefused(), saw: a.String()}
	if v.isRight {
		s.refused = append(s.refused, a)
	}
	if a.Status == 0 {
		v.advice = "Answer 401: the call had no answer, so it is not known whether it was accepted."
	}
	return v, err
}

// sendNew sends a new delivery. Before the delivery is signed, change is
// applied to it; afterwards alter is applied to the signed request.
func (s *certifyRun) sendNew(ctx context.Context, client *webhook.Client, change func(*webhook.Delivery), alter ...func(*http.Request)) (receiverAnswer, error) {
	d, err := s.delivery()
	if err != nil {
		return receiverAnswer{}, err
	}
	if change != nil {
		change(d)
	}
	return s.send(ctx, client, d, alter...)
}

func sendFirst(ctx context.Context, s *certifyRun) (checkVerdict, error) {
	var err error
	s.first, err = s.sendNew(ctx, s.client, nil)
	v := checkVerdict{isRight: s.first.isAccepted(), saw: s.first.String()}
	switch status := s.first.Status; {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		v.advice = "Compare the secret of the receiver with the one given here. If they are the same, verify the raw body, not JSON that was read and written again."
		if !s.isSigned() {
			v.advice = "The receiver wants a signature: give the secret with --secret-file, or --hmac-key."
		}
	case s.first.Error != "":
		v.advice = strings.ToUpper(s.first.Error[:1]) + s.first.Error[1:] + "."
	}
	return v, err
}

func checkRedirect(_ context.Context, s *certifyRun) (checkVerdict, error) {
	return checkVerdict{isRight: s.first.Status/100 != 3 && s.first.Status != 0, saw: s.first.String()}, nil
}

func checkHTTPS(_ context.Context, s *certifyRun) (checkVerdict, error) {
	scheme, _, _ := strings.Cut(s.opts.Settings.CallbackURL, ":")
	return checkVerdict{isRight: strings.EqualFold(scheme, "https"), saw: scheme}, nil
}

func checkLength(_ context.Context, s *certifyRun) (checkVerdict, error) {
	if s.first.long {
		return checkVerdict{saw: fmt.Sprintf("%d KB or more", webhook.MaxBody>>10)}, nil
	}
	return checkVerdict{isRight: true, saw: fmt.Sprintf("less than %d KB", webhook.MaxBody>>10)}, nil
}

func repeat(ctx context.Context, s *certifyRun) (checkVerdict, error) {
	d, err := s.delivery()
	if err != nil {
		return checkVerdict{}, err
	}
	a, err := s.send(ctx, s.client, d)
	if err != nil || !a.isAccepted() {
		return checkVerdict{saw: a.String(), advice: "Answer 2xx to each call of the hub; this one was like the first."}, err
	}
	d.Attempts = 1
	a, err = s.send(ctx, s.client, d)
	return checkVerdict{isRight: a.isAccepted(), saw: a.String()}, err
}

func sendUnknownMember(ctx context.Context, s *certifyRun) (checkVerdict, error) {
	a, err := s.sendNew(ctx, s.client, func(d *webhook.Delivery) { d.Message.Attributes["unknowntoreceivers"] = "1" })
	return checkVerdict{isRight: a.isAccepted(), saw: a.String()}, err
}

func sendMany(ctx context.Context, s *certifyRun) (checkVerdict, error) {
	deliveries := make([]*webhook.Delivery, s.opts.Calls)
	for i := range deliveries {
		var err error
		if deliveries[i], err = s.delivery(); err != nil {
			return checkVerdict{}, err
		}
	}
	results := make([]webhook.Result, len(deliveries))
	g, inGroup := errgroup.WithContext(ctx)
	for i, d := range deliveries {
		g.Go(func() (err error) {
			results[i], err = s.client.Send(inGroup, d)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return checkVerdict{}, err
	}
	n, waits := 0, true
	worst := receiverAnswer{made: true}
	for _, r := range results {
		a := receiverAnswer{Answer: r.Answer, made: true}
		if a.isAccepted() {
			n++
			continue
		}
		waits = waits && a.Status == http.StatusTooManyRequests && a.RetryAfter > 0
		worst = a
	}
	if n == len(results) {
		return checkVerdict{isRight: true, saw: fmt.Sprintf("%d of %d accepted", n, n)}, nil
	}
	return checkVerdict{isRight: n > 0 && waits, saw: fmt.Sprintf("%d of %d accepted, else %s", n, len(results), worst)}, nil
}

func sendLarge(ctx context.Context, s *certifyRun) (checkVerdict, error) {
	const around = len(`{"x":""}`)
	d, err := s.delivery()
	if err != nil {
		return checkVerdict{}, err
	}
	d.Message.Payload = []byte(`{"x":"` + strings.Repeat("x", max(0, s.opts.Large-around)) + `"}`)
	r, err := s.client.Send(ctx, d)
	a := receiverAnswer{Answer: r.Answer, made: true}
	return checkVerdict{isRight: a.isAccepted(), saw: a.String()}, err
}

func sendSlowly(ctx context.Context, s *certifyRun) (checkVerdict, error) {
	const parts = 10
	d, err := s.delivery()
	if err != nil {
		return checkVerdict{}, err
	}
	r, err := s.client.SendAltered(ctx, d, slowBody(parts, s.opts.Slow/parts, s.opts.Pause))
	a := receiverAnswer{Answer: r.Answer, made: true}
	return checkVerdict{isRight: a.isAccepted(), saw: a.String()}, err
}

func sendTwoSignatures(ctx context.Context, s *certifyRun) (checkVerdict, error) {
	other, err := s.otherSecret()
	if err != nil {
		return checkVerdict{}, err
	}
	a, err := s.sendNew(ctx, s.client, func(d *webhook.Delivery) {
		d.Secrets = append([]webhook.Secret{other}, s.opts.Secrets...)
	})
	return checkVerdict{isRight: a.isAccepted(), saw: a.String()}, err
}

func signWithOther(ctx context.Context, s *certifyRun) (checkVerdict, error) {
	other, err := s.otherSecret()
	if err != nil {
		return checkVerdict{}, err
	}
	return s.mustRefuse(s.sendNew(ctx, s.client, func(d *webhook.Delivery) {
		if len(d.Secrets) > 0 {
			d.Secrets = []webhook.Secret{other}
		}
		if d.HMACKey != "" {
			d.HMACKey = "another key: " + webhook.Key(d.ID)
		}
	}))
}

func checkRefusals(_ context.Context, s *certifyRun) (checkVerdict, error) {
	if len(s.refused) == 0 {
		return checkVerdict{saw: "it has refused nothing", advice: verifyAdvice}, nil
	}
	for _, a := range s.refused {
		switch a.Status {
		case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden:
		default:
			return checkVerdict{saw: a.String()}, nil
		}
	}
	return checkVerdict{isRight: true, saw: fmt.Sprintf("%d refusals", len(s.refused))}, nil
}

func sendAfterBroken(ctx context.Context, s *certifyRun) (checkVerdict, error) {
	for range 3 {
		if _, err := s.sendNew(ctx, s.client, nil, breakBody); err != nil {
			return checkVerdict{}, err
		}
	}
	a, err := s.sendNew(ctx, s.client, nil)
	return checkVerdict{isRight: a.isAccepted(), saw: a.String()}, err
}

func checkTime(_ context.Context, s *certifyRun) (checkVerdict, error) {
	return checkVerdict{isRight: s.slowest <= s.opts.Quick, saw: fmt.Sprintf("%s at most", roundToMilliseconds(s.slowest))}, nil
}
