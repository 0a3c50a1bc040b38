package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A Caller makes test calls. It is safe for concurrent use.
type Caller interface {
	// Test calls a receiver once, with the same headers and signatures as other calls. It returns the answer and the
	// first bytes of the response body. If the call fails, the answer contains the error.
	Test(ctx context.Context, r *Receiver, m *domain.Message) (domain.Answer, []byte)
}

// A TestResult is the result of a test call.
type TestResult struct {
	Answer    domain.Answer
	IsSuccess bool
	Body      []byte // first bytes of the response body, at most maxTestBody
	MessageID string // id of the test event
}

// maxTestBody is the maximum length of TestResult.Body. It suffices for an error message, but not to fetch data through
// the hub.
const maxTestBody = 256

// TestType is the event type of a test message.
const TestType = "messagehub.test"

// A TestLimitError reports too many test calls. Its kind is Busy.
type TestLimitError struct{ Pause time.Duration }

func (e *TestLimitError) Error() string {
	return fmt.Sprintf("there were too many test calls: at most %d a minute of an owner, and %d of all; test again in %s", testsPerOwner, testsAltogether, e.Pause.Round(time.Second))
}

// Test calls the receiver of a subscription once, even if calls are paused. It stores nothing. It fails with NotFound
// if the reader may not read the subscription, and with a [TestLimitError] after too many test calls.
func (s *Service) Test(ctx context.Context, reader Reader, id domain.SubscriptionID) (*TestResult, error) {
	d, err := s.findReadable(ctx, reader, id)
	if err != nil {
		return nil, err
	}
	receiver, err := s.ports.Receivers.Receiver(ctx, id.Cursor(), false)
	if err != nil {
		return nil, err
	}
	now := s.opts.Clock()
	if pause := s.tests.acquire(d.Owner, now); pause > 0 {
		return nil, domain.Errorf(domain.Busy, "%w", &TestLimitError{pause})
	}
	m := &domain.Message{
		Attributes: map[string]string{
			"specversion": "1.0", "id": "test-" + s.opts.Random(), "source": "/v1/subscriptions/" + id.String(), "type": TestType,
			"time": now.UTC().Format(time.RFC3339),
		},
		ContentType: "application/json",
		Payload:     []byte(`{"test":true}`),
	}
	found := &TestResult{MessageID: m.Attributes["id"]}
	answer, body := s.ports.Caller.Test(ctx, &receiver, m)
	found.Answer, found.Body = answer, body[:min(len(body), maxTestBody)]
	found.IsSuccess = receiver.Policy.IsSuccess(found.Answer) && found.Answer.Error == ""
	return found, nil
}
