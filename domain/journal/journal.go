// Package journal records what operators order about subscriptions, consumers of the broker and jobs on
// objects, which belong to no mailbox.
//
// It promises that an order is begun only after its record is stored, with who wants it and why. The record
// gets its outcome afterwards, also when the caller is gone. A node that dies in an order leaves a record
// without an outcome: the order may have been carried out.
//
// The use case that carries out the order is left to others. Records are stored as those of orders about
// dead letters are, each subject in the place of a queue; no queue has the name of a subject.
package journal

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// An Order says who wants something, and why.
type Order = repository.Order

// A Record is what an operator has ordered.
type Record struct {
	Order
	What    string
	When    time.Time
	About   string // such as a delivery of the subject; "": the subject itself
	Outcome string // "": the order is under way, or its node has died
}

// A Subject is what orders are about.
type Subject struct{ name string }

// SubjectOf returns the subject with a kind, such as subscription, and the names that identify it.
func SubjectOf(kind string, names ...string) Subject {
	return Subject{"|" + kind + "|" + strings.Join(names, "|")} // a queue's name has no bar
}

// A Journal is safe for concurrent use.
type Journal struct {
	records repository.DeadLetterOrders
	log     *slog.Logger
}

// New returns a Journal. A nil logger logs nothing.
func New(records repository.DeadLetterOrders, log *slog.Logger) *Journal {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Journal{records, log}
}

const (
	doneOutcome = "done"
	maxOutcome  = 500              // characters
	endTimeout  = 10 * time.Second // for the outcome
)

// CarryOut records an order, calls do, and records its outcome. It fails with Invalid, and does not call do,
// unless the order says who and why.
func (j *Journal) CarryOut(ctx context.Context, subject Subject, what, about string, by Order, do func(context.Context) error) error {
	record, err := j.records.BeginDeadLetterOrder(ctx, repository.DeadLetterOrder{Order: by, What: what, Queue: subject.name, MessageID: about})
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
	if err := j.records.EndDeadLetterOrder(stored, record); err != nil {
		j.log.LogAttrs(ctx, slog.LevelWarn, "the outcome of an operator's order is not in its record", append(attrs, slog.String("error", err.Error()))...)
	}
	return err
}

// Records returns up to limit records of a subject, the newest first.
func (j *Journal) Records(ctx context.Context, subject Subject, limit int) ([]Record, error) {
	found, err := j.records.DeadLetterOrders(ctx, subject.name, limit)
	records := make([]Record, len(found))
	for i := range found {
		r := &found[i]
		records[i] = Record{Order: r.Order, What: r.What, When: r.When, About: r.MessageID, Outcome: r.Outcome}
	}
	return records, err
}

// shortenText returns the first characters of a text.
func shortenText(text string) string {
	characters := []rune(text)
	return string(characters[:min(len(characters), maxOutcome)])
}
