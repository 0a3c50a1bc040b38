package cosmos

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/domain"
)

// An alarm remembers the recipients in whose mailboxes a Peek found lost documents, and logs each
// recipient once.
type alarm struct {
	logger  *slog.Logger
	gauge   prometheus.Gauge // number of remembered recipients
	message string
	action  string // action that the log recommends to an operator

	present atomic.Bool // recipients is not empty

	mu         sync.Mutex
	recipients map[domain.ActorID]bool
}

// maxAlarms is the limit for the recipients that an alarm remembers and logs.
const maxAlarms = 1000

func newAlarm(logger *slog.Logger, gauge prometheus.Gauge, message, action string) *alarm {
	return &alarm{logger: logger, gauge: gauge, message: message, action: action, recipients: make(map[domain.ActorID]bool)}
}

// add remembers a recipient. If the recipient is new, add logs it together with found, a description of
// the loss.
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

// remove forgets a recipient after a Peek found no lost document.
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
