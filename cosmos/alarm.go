package cosmos

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/domain"
)

// An alarm remembers the recipients of whom a Peek has found that the store has lost
// something. Each is logged once.
type alarm struct {
	logger  *slog.Logger
	gauge   prometheus.Gauge // how many recipients there are
	message string
	action  string // what an operator does

	present atomic.Bool // recipients is not empty

	mu         sync.Mutex
	recipients map[domain.ActorID]bool
}

// maxAlarms bounds how many recipients are remembered and logged.
const maxAlarms = 1000

func newAlarm(logger *slog.Logger, gauge prometheus.Gauge, message, action string) *alarm {
	return &alarm{logger: logger, gauge: gauge, message: message, action: action, recipients: make(map[domain.ActorID]bool)}
}

// add notes a recipient, and logs it with what was found, once.
func (a *alarm) add(recipient domain.ActorID, found any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.recipients[recipient] || len(a.recipients) == maxAlarms {
		return
	}
	a.recipients[recipient] = true
	a.present.Store(true)
	a.gauge.Set(float64(len(a.recipients)))
	a.logger.Error("the store has lost something", "what", a.message, "recipient", recipient.String(), "found", found, "action", a.action)
}

// remove notes that a recipient is in order again.
func (a *alarm) remove(recipient domain.ActorID) {
	if !a.present.Load() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.recipients, recipient)
	a.present.Store(len(a.recipients) > 0)
	a.gauge.Set(float64(len(a.recipients)))
}
