// Package journal records the actions of operators on subscriptions, consumers of the broker, and jobs on
// objects. The records of actions on mailboxes are stored in the mailboxes.
//
// It promises that an action begins only after its record is stored, with the name of the operator and the
// reason. The outcome is added afterwards, even if the caller has disconnected. A node that dies during an
// action leaves a record without an outcome: the action may have been carried out.
//
// The caller carries out the action. The store keeps these records together with the records of actions on
// dead letters, with the name of the subject in place of the queue. No queue has the name of a subject.
package journal

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

// A Record describes an action of an operator.
type Record struct {
	AdminAction
	What    string
	When    time.Time
	About   string // the part of the subject that the action concerns, such as a delivery; "": the whole subject
	Outcome string // "": the action is in progress, or its node has died
}

// A Subject identifies an object of operators' actions, such as a subscription.
type Subject struct{ name string }

// SubjectOf returns the subject of a kind, such as subscription, that names identify.
func SubjectOf(kind string, names ...string) Subject {
	return Subject{"|" + kind + "|" + strings.Join(names, "|")} // the name of a queue has no |
}

// A Journal is safe for concurrent use.
type Journal struct {
	records repository.DeadLetterActions
	log     *slog.Logger
}

// New returns a Journal. A nil logger logs nothing.
func New(records repository.DeadLetterActions, log *slog.Logger) *Journal {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Journal{records, log}
}

const (
	doneOutcome = "done"
	maxOutcome  = 500              // characters
	endTimeout  = 10 * time.Second // time limit for recording the outcome
)

// CarryOut records an action, calls do, and records the outcome. It fails with Invalid, without calling do,
// if the operator or the reason is missing.
func (j *Journal) CarryOut(ctx context.Context, subject Subject, what, about string, by AdminAction, do func(context.Context) error) error {
	record, err := j.records.BeginDeadLetterAction(ctx, repository.DeadLetterAction{AdminAction: by, What: what, Queue: subject.name, MessageID: about})
	if err != nil {
		return err
	}
	err = do(ctx)
	record.Outcome = doneOutcome
	attrs := []slog.Attr{
		slog.String("what", what), slog.String("subject", subject.name), slog.String("about", about), slog.String("who", by.Who), slog.String("why", by.Why),
	}
	if err != nil {
		record.Outcome = shortenText(domain.KindOf(err).String() + ": " + err.Error())
		j.log.LogAttrs(ctx, slog.LevelWarn, "operator's order failed", append(attrs, slog.String("error", err.Error()))...)
	} else {
		j.log.LogAttrs(ctx, slog.LevelInfo, "operator's order carried out", attrs...)
	}
	stored, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if err := j.records.EndDeadLetterAction(stored, record); err != nil {
		j.log.LogAttrs(ctx, slog.LevelWarn, "the outcome of an operator's order is not in its record", append(attrs, slog.String("error", err.Error()))...)
	}
	return err
}

// Records returns up to limit records of a subject, the newest first.
func (j *Journal) Records(ctx context.Context, subject Subject, limit int) ([]Record, error) {
	found, err := j.records.DeadLetterActions(ctx, subject.name, limit)
	records := make([]Record, len(found))
	for i := range found {
		r := &found[i]
		records[i] = Record{AdminAction: r.AdminAction, What: r.What, When: r.When, About: r.MessageID, Outcome: r.Outcome}
	}
	return records, err
}

// shortenText returns the first maxOutcome characters of a text.
func shortenText(text string) string {
	characters := []rune(text)
	return string(characters[:min(len(characters), maxOutcome)])
}
