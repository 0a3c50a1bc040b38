package ingest

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// store has messages stored, and passes them on to be settled. When it returns, each of them is
// stored, refused, or no longer in hand.
func (l *lane) store(ctx context.Context, ms []*message) {
	sound := make([]*message, 0, len(ms))
	for _, m := range ms {
		if m.refused != nil {
			l.unsettled <- m
			continue
		}
		if l.waiting.waitsBehind(m) {
			l.wait(m, nil)
			continue
		}
		sound = append(sound, m)
	}
	if len(sound) > 0 {
		l.save(ctx, sound, damagePatience)
	}
}

// save stores messages together. If the hub refuses that, it stores them one by one,
// in their order, so that only those at fault are refused: of two contents with one
// id, the first is stored. It also stores them one by one if the hub reports
// damage patience times in a row, or a mailbox of a newer format, so that the messages
// of other recipients are stored. The messages of a session, which has one recipient,
// wait instead.
func (l *lane) save(ctx context.Context, ms []*message, patience int) {
	if l.damage != nil { // what came before is not stored, so these may not be
		l.leaveAll(ms)
		return
	}
	var events []domain.Event
	for _, m := range ms {
		events = append(events, m.events...)
	}
	var ingested hub.Ingested
	var err error
	if len(events) > 0 { // a message may bring none
		ingested, err = l.untilStored(ctx, events, patience)
	}
	switch {
	case err == nil:
		l.stored(ms, ingested)
	case isRefusal(err) && len(ms) > 1:
		for _, m := range ms {
			l.save(ctx, []*message{m}, patience)
		}
	case isRefusal(err):
		ms[0].refused = rejectionOf(err)
		l.unsettled <- ms[0]
	case !isDamage(err) && !isNewerFormat(err) || ctx.Err() != nil:
		l.leaveAll(ms)
	case l.session != nil:
		l.giveUp(err)
		l.leaveAll(ms)
	case len(ms) > 1:
		if isDamage(err) { // else no damage was seen often enough
			patience = 1
		}
		for _, m := range ms {
			if l.waiting.waitsBehind(m) {
				l.wait(m, nil)
				continue
			}
			l.save(ctx, []*message{m}, patience)
		}
	case isNewerFormat(err):
		l.wait(ms[0], err)
	default:
		ms[0].refused = damaged(err)
		l.unsettled <- ms[0]
	}
}

// untilStored ingests events, and retries until the hub has stored or refused them,
// has reported damage patience times in a row, or a mailbox of a newer format, or ctx
// ends.
func (l *lane) untilStored(ctx context.Context, events []domain.Event, patience int) (hub.Ingested, error) {
	for failures, damage := 0, 0; ; {
		attempt, cancel := context.WithTimeout(ctx, l.in.limits.Attempt)
		ingested, err := l.in.opts.Hub.Ingest(attempt, events)
		cancel()
		l.endSave()                                           // at the latest: nobody waits for one that is in trouble
		l.in.metrics.accepted.Add(float64(ingested.Accepted)) // a failure may have stored those of other recipients
		if damage++; !isDamage(err) {
			damage = 0
		}
		if err == nil || isRefusal(err) || damage == patience || isNewerFormat(err) || ctx.Err() != nil {
			if failures > 0 {
				l.in.metrics.holding.Dec()
				l.logger.Info("no longer holding events", "failures", failures, "stored", err == nil)
			}
			return ingested, err
		}
		if failures++; failures == 1 {
			l.in.metrics.holding.Inc()
		}
		l.in.metrics.retries.Inc()
		if failures&(failures-1) == 0 {
			l.logger.Log(ctx, level(err), "the events cannot be stored; holding them and trying again", "error", err, "events", len(events), "failures", failures)
		}
		pause(ctx, l.in.delay(failures))
	}
}

// isRefusal reports whether trying again would not help.
func isRefusal(err error) bool {
	_, rejected := errors.AsType[*hub.RejectionError](err)
	return rejected || err != nil && domain.KindOf(err) == domain.Invalid
}

// level returns how loudly to tell of an error that should pass.
func level(err error) slog.Level {
	passing := errors.Is(err, context.DeadlineExceeded)
	switch domain.KindOf(err) {
	case domain.Busy, domain.Unavailable, domain.Uncertain, domain.Conflict:
		passing = true
	default:
	}
	if passing {
		return slog.LevelWarn
	}
	return slog.LevelError
}

// rejectionOf says what is wrong with the events of one message.
func rejectionOf(err error) *rejection {
	if domain.KindOf(err) == domain.Conflict {
		return reject(reasonConflict, "Nothing of the message was taken: %v.", err)
	}
	if _, all := errors.AsType[*hub.RejectionError](err); all {
		return reject(reasonInvalid, "Nothing of the message was taken: %v.", err)
	}
	return reject(reasonInvalid, "The events of some recipient were not taken: %v. Those of others are stored.", err)
}

// stored passes messages on after a save that succeeded.
func (l *lane) stored(ms []*message, ingested hub.Ingested) {
	l.in.metrics.duplicates.Add(float64(ingested.Duplicates))
	l.in.metrics.conflicts.Add(float64(len(ingested.Conflicts)))
	// What was saved without a lock may have been saved before what others saved since.
	if late := l.in.order.observe(slices.DeleteFunc(slices.Clone(ms), l.isLost), ingested.Duplicates); late > 0 {
		l.in.metrics.inversions.Add(float64(late))
		l.logger.Error("events were stored after later ones of the same recipient", "events", late, "first_of", recipients(ms[0].events))
	}
	first := 0
	for _, m := range ms {
		after := first + len(m.events)
		for _, at := range ingested.Conflicts {
			if first <= at && at < after {
				m.refused = reject(reasonConflict, "Event %s was stored before with other content. The events of the message with other ids are stored.", m.events[at-first].ID)
				break
			}
		}
		first = after
	}
	for _, m := range ms {
		l.unsettled <- m
	}
}

// recipients returns for whom events are, but not all of very many, for the log.
func recipients(events []domain.Event) []string {
	const most = 5
	var to []string
	for i := range events {
		if r := events[i].Recipient.String(); len(to) < most && !slices.Contains(to, r) {
			to = append(to, r)
		}
	}
	return to
}
