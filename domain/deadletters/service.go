package deadletters

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// An AdminAction names the operator who requests an action, and the reason.
type AdminAction = repository.AdminAction

// A Record is the record of an operator's action.
type Record = repository.DeadLetterAction

// A Queue is a queue whose dead letters operators can access.
type Queue struct {
	Name     string
	Use      string // purpose of the messages
	NoResend string // why dead letters cannot be sent again; "": they can be sent again
}

// Options set up a Service. Bus and Actions are required.
type Options struct {
	Queues  []Queue
	Bus     Bus
	Actions repository.DeadLetterActions
	Logger  *slog.Logger // default: a logger that discards everything
}

// A Service carries out actions of operators on dead letters. It is safe for concurrent use.
type Service struct {
	opts Options
}

// New returns a Service. It does not call the bus.
func New(o Options) *Service {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Service{o}
}

// A QueueState is a queue with the number of its dead letters.
type QueueState struct {
	Queue
	DeadLetters int64
	IsKnown     bool // false: the bus does not provide DeadLetters
}

// Queues returns the queues whose dead letters operators can access.
func (s *Service) Queues() []QueueState {
	states := make([]QueueState, len(s.opts.Queues))
	for i, q := range s.opts.Queues {
		states[i].Queue = q
		states[i].DeadLetters, states[i].IsKnown = s.opts.Bus.Count(q.Name)
	}
	return states
}

// Queue returns the queue called name. It fails with NotFound if the hub does not have it.
func (s *Service) Queue(name string) (Queue, error) {
	for _, q := range s.opts.Queues {
		if q.Name == name {
			return q, nil
		}
	}
	names := make([]string, len(s.opts.Queues))
	for i := range s.opts.Queues {
		names[i] = s.opts.Queues[i].Name
	}
	return Queue{}, domain.Errorf(domain.NotFound, "this hub has no queue %q; its queues are %s", domain.Shorten(name), strings.Join(names, ", "))
}

// Records returns up to limit records of a queue, the newest first.
func (s *Service) Records(ctx context.Context, queue string, limit int) ([]Record, error) {
	if _, err := s.Queue(queue); err != nil {
		return nil, err
	}
	return s.opts.Actions.DeadLetterActions(ctx, queue, limit)
}

// The actions.
const (
	lookAction   = "look"
	resendAction = "resend"
	deleteAction = "delete"
)

// doneOutcome is the Outcome in the record of an action that succeeded.
const doneOutcome = "done"

// maxOutcome is the maximum length of the Outcome in a record, in characters.
const maxOutcome = 500

// shorten cuts text to limit characters. A text that was cut ends with an ellipsis.
func shorten(text string, limit int) string {
	characters := []rune(text)
	if len(characters) <= limit {
		return text
	}
	return string(characters[:limit-1]) + "…"
}

// endTimeout is the time limit for storing the outcome of an action.
const endTimeout = 10 * time.Second

// recordOutcome logs the outcome of an action and adds it to the stored record, even if the
// caller has disconnected.
func (s *Service) recordOutcome(ctx context.Context, record *Record, err error) {
	record.Outcome = doneOutcome
	if err != nil {
		record.Outcome = shorten(domain.KindOf(err).String()+": "+err.Error(), maxOutcome)
	}
	attrs := []slog.Attr{
		slog.String("what", record.What), slog.String("queue", record.Queue), slog.Int64("sequence_number", record.Number), slog.String("reason", record.Reason),
		slog.Int("dead_letters", record.Letters), slog.String("who", record.Who), slog.String("why", record.Why),
	}
	if err != nil {
		s.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "operator's order about dead letters failed", append(attrs, slog.String("error", err.Error()))...)
	} else {
		s.opts.Logger.LogAttrs(ctx, slog.LevelInfo, "operator's order about dead letters carried out", attrs...)
	}
	stored, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if err := s.opts.Actions.EndDeadLetterAction(stored, *record); err != nil {
		s.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "the outcome of an operator's order about dead letters is not in its record", append(attrs, slog.String("error", err.Error()))...)
	}
}
