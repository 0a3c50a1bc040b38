package find

import (
	"context"
	"fmt"
	"strconv"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// addEvents adds the events with an id to a. For a trace, it adds the events saved and the bundles opened in the trace.
// If q names no actor, it searches all mailboxes, one after the other.
func (s *Service) addEvents(ctx context.Context, a *Answer, id *parsedID, q *Query, resumed searchToken) error {
	search, err := s.ports.Finder.FindEvent(ctx, repository.EventQuery{
		ID: id.event, Trace: id.trace, Recipient: q.Actor, Origin: q.Origin,
		After: resumed.Next, Limit: s.opts.Limit, Units: s.opts.Units, Time: s.opts.Time,
	})
	if err != nil {
		return err
	}
	a.Scope.Mailboxes += search.Mailboxes
	a.addUnread(search.Unread...)
	for i := range search.Found {
		e := &search.Found[i]
		m, err := s.readMailbox(ctx, a, e.Recipient)
		if err != nil {
			return err
		}
		a.add(m.eventResult(e))
		a.note("The hub does not store whether an event arrived by HTTP or by the bus.")
	}
	for i := range search.Saves {
		a.add(saveResult(&search.Saves[i]))
	}
	for i := range search.Bundles {
		if err := s.addBundle(ctx, a, &search.Bundles[i]); err != nil {
			return err
		}
	}
	if search.Next != "" {
		a.After = searchToken{ID: q.ID, Found: a.Scope.Found, Mailboxes: a.Scope.Mailboxes, Unread: a.Scope.Unread, Next: search.Next}.String()
	}
	if !q.Actor.IsZero() && search.Mailboxes == 0 {
		a.note("Actor " + q.Actor.String() + " has no mailbox: nothing was ever saved for it.")
	}
	if id.kinds[Event] && len(search.Found) == 0 && search.Next == "" {
		a.note("An event can be found until its bundle was dequeued and the retention has passed.")
	}
	return nil
}

func (m *mailbox) eventResult(e *repository.FoundEvent) Result {
	r := Result{
		Kind: Event, State: eventState(e), Actor: e.Recipient,
		Title: fmt.Sprintf("Event %d from %s, %s", e.Sequence, e.Origin, e.DocumentType),
		Steps: []Step{acceptedStep(e)}, Waits: m.eventWaits(e),
	}
	for i := range e.Bundles {
		r.Steps = append(r.Steps, m.bundleSteps(&e.Bundles[i])...)
	}
	if e.HasMore {
		r.Notes = append(r.Notes, "The mailbox has many bundles, and not all of them were searched for the event.")
	}
	if r.State == StatePassed {
		r.Notes = append(r.Notes, "The event was delivered or skipped in a bundle that is no longer stored.")
	}
	r.finish(m, e.Mailbox.Frozen)
	return r
}

func eventState(e *repository.FoundEvent) State {
	switch {
	case e.IsReserved:
		return StateSaving
	case !e.IsAcknowledged && e.Mailbox.Open != nil && holds(e.Bundles, e.Mailbox.Open.ID):
		return StateOpen
	case !e.IsAcknowledged:
		return StateWaiting
	}
	state := StatePassed
	for i := range e.Bundles {
		if s := e.Bundles[i].State; s == repository.BundleDequeued || s == repository.BundleSkipped {
			state = bundleState(s)
		}
	}
	return state
}

func holds(bundles []repository.FoundBundle, id domain.BundleID) bool {
	for i := range bundles {
		if bundles[i].ID == id {
			return true
		}
	}
	return false
}

// acceptedStep returns the step for the Save of an event.
func acceptedStep(e *repository.FoundEvent) Step {
	s := Step{
		What: StepAccepted, At: e.Saved,
		Text: fmt.Sprintf("The hub accepted the event from domain %s for actor %s.", e.Origin, e.Recipient),
		Details: []Detail{
			{"number", strconv.FormatInt(int64(e.Sequence), 10)},
			{"cabinet", cabinetText(e.Cabinet())},
			{"group", e.Group.String()},
			{"document type", e.DocumentType.String()},
			{"weight", fmt.Sprintf("%d KB", e.Weight)},
		},
	}
	if e.IsReserved {
		s.Text = fmt.Sprintf("A Save has stored the event from domain %s for actor %s, and has not made it visible yet.", e.Origin, e.Recipient)
	}
	if !e.PayloadAt.IsZero() {
		s.Details = append(s.Details, Detail{"payload", countOf(e.PayloadAt.Length, "byte")})
	}
	s.Details = append(s.Details, spanDetails(e.Save)...)
	if at := e.Slot; at != nil {
		where := fmt.Sprintf("slot %d of drawer %d (%s)", at.Slot, at.Ordinal, at.Drawer)
		if at.InHead {
			where += ", still in the head"
		}
		s.Details = append(s.Details, Detail{"place", where})
	}
	return s
}

// eventWaits returns the reasons why an event waits.
func (m *mailbox) eventWaits(e *repository.FoundEvent) (waits []Wait) {
	switch eventState(e) {
	case StateSaving:
		return []Wait{{
			Cause: CauseSaving, Since: e.Saved,
			Text: "A Save is under way: its events become visible together, or are rolled back.",
			Next: "Repeat the query in a few seconds. A sender that received no response sends the event again. If the node of the Save has died, the next Save for the actor or messagehub check --repair rolls this Save back.",
		}}
	case StateOpen, StateWaiting:
		return m.visibleWaits(e)
	case StateDequeued, StateSkipped, StateReleased, StatePassed, StatePublished, StateAccepted:
	}
	for i := range e.Bundles {
		waits = append(waits, m.bundleWaits(&e.Bundles[i])...)
	}
	return waits
}

// visibleWaits returns the reasons why a visible event waits. The event must not be acknowledged.
func (m *mailbox) visibleWaits(e *repository.FoundEvent) (waits []Wait) {
	box := &e.Mailbox
	if box.Frozen {
		waits = append(waits, m.frozenWait())
	}
	if open := box.Open; open != nil && holds(e.Bundles, open.ID) {
		return append(waits, m.openWaits(open)...)
	}
	if box.Lost != "" {
		waits = append(waits, Wait{
			Cause: CauseDamaged,
			Text:  "The first waiting event of the cabinet cannot be read, so the hub delivers no later event of the cabinet: " + box.Lost,
			Next:  fmt.Sprintf("Restore the lost data, or abandon it: messagehub queue abandon %s %s '%s' --why ...", m.actor, e.Origin, e.ContentType),
		})
	}
	if open := box.Open; open != nil {
		waits = append(waits, Wait{
			Cause: CauseOtherBundle, Since: open.Opened,
			Text: fmt.Sprintf("Bundle %s with %s is open in group %s. The group opens no other bundle until this one is dequeued.", open.ID, countOf(open.Count, "event"), open.Group),
			Next: fmt.Sprintf("Find out what that bundle waits for: messagehub find %s --actor %s", open.ID, m.actor),
		})
		waits = append(waits, m.openWaits(open)...)
	}
	if f := e.FirstWaiting; f != nil {
		waits = append(waits, Wait{
			Cause: CauseOlderCabinet,
			Text:  fmt.Sprintf("Event %d of cabinet %s is older than every waiting event in this event's cabinet, so a Peek of group %s returns that cabinet first.", f.Sequence, cabinetText(f.Cabinet), e.Group),
			Next:  "Nothing is wrong: the actor gets to it by peeking and dequeuing.",
		})
	}
	before := e.Before
	if open := box.Open; open != nil && open.Cabinet == e.Cabinet() && before > 0 {
		before = max(before-int64(open.Count), 0)
	}
	switch {
	case before > 0:
		waits = append(waits, Wait{
			Cause: CauseOlderEvents,
			Text:  fmt.Sprintf("Before it, %s of its cabinet %s. Events that fit into one bundle are delivered together.", countOf(before, "event"), waitOrWaits(before)),
			Next:  "Nothing is wrong: the actor gets to it by peeking and dequeuing.",
		})
	case before < 0:
		waits = append(waits, Wait{
			Cause: CauseOlderEvents,
			Text:  "Before it, events of its cabinet wait in more drawers than are counted.",
			Next:  "Nothing is wrong: the actor gets to it by peeking and dequeuing.",
		})
	}
	if box.Open == nil {
		w := Wait{
			Cause: CauseNotPeeked,
			Text:  fmt.Sprintf("No bundle of group %s is open. The event waits for actor %s to peek.", e.Group, m.actor),
			Next:  "Ask the actor whether it peeks, and which responses it receives. The log of the hub has its requests.",
		}
		if len(e.Bundles) == 0 {
			w.Since = e.Saved
		}
		waits = append(waits, w)
	}
	return waits
}

// waitOrWaits returns "waits" if n is 1, otherwise "wait".
func waitOrWaits(n int64) string {
	if n == 1 {
		return "waits"
	}
	return "wait"
}
