package find

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// addBundles adds the bundles with an id to a. If actor is zero, it searches all actors. For a bundle that is no longer
// stored, it adds the operators' records, which may still be stored.
func (s *Service) addBundles(ctx context.Context, a *Answer, id domain.BundleID, actor domain.ActorID) error {
	search, err := s.ports.Finder.FindBundle(ctx, id, actor, s.opts.Limit)
	if err != nil {
		return err
	}
	a.addUnread(search.Unread...)
	if search.HasMore {
		a.note("There are more bundles with this id. Name an actor to see only its bundle.")
	}
	for i := range search.Found {
		if err := s.addBundle(ctx, a, &search.Found[i]); err != nil {
			return err
		}
	}
	if len(search.Found) > 0 {
		return nil
	}
	if actor.IsZero() {
		return nil
	}
	return s.addRecords(ctx, a, id, actor)
}

func (s *Service) addBundle(ctx context.Context, a *Answer, b *repository.FoundBundle) error {
	m, err := s.readMailbox(ctx, a, b.Cabinet.Recipient)
	if err != nil {
		return err
	}
	r := Result{
		Kind: Bundle, State: bundleState(b.State), Actor: b.Cabinet.Recipient,
		Title: fmt.Sprintf("Bundle of %s from %s", countOf(b.Count, "event"), b.Cabinet.Origin),
		Steps: m.bundleSteps(b), Waits: m.bundleWaits(b),
	}
	r.finish(m, b.Frozen)
	a.add(r)
	return nil
}

// addRecords adds a result for a bundle that is no longer stored, if there are operators' records about it.
func (s *Service) addRecords(ctx context.Context, a *Answer, id domain.BundleID, actor domain.ActorID) error {
	m, err := s.readMailbox(ctx, a, actor)
	if err != nil {
		return err
	}
	records := m.recordsOf(id)
	if len(records) == 0 {
		return nil
	}
	last := records[len(records)-1]
	r := Result{Kind: Bundle, State: StatePassed, Actor: actor, Title: fmt.Sprintf("Bundle of %s in group %s", countOf(last.Events, "event"), last.Group)}
	for i := range records {
		r.Steps = append(r.Steps, recordStep(&records[i]))
	}
	r.Notes = append(r.Notes, "The bundle is no longer stored: its retention has passed. Only the records of operators remain.")
	a.add(r)
	return nil
}

// finish sorts the steps. If the mailbox is frozen, it adds a step for the freeze.
func (r *Result) finish(m *mailbox, isFrozen bool) {
	sortSteps(r.Steps)
	if !isFrozen {
		return
	}
	if f := m.lastFreeze(); f != nil {
		i := slices.IndexFunc(r.Steps, func(s Step) bool { return s.At.After(f.When) })
		if i < 0 {
			i = len(r.Steps)
		}
		r.Steps = slices.Insert(r.Steps, i, recordStep(f))
	}
}

func bundleState(s repository.BundleState) State {
	return State(s) // State and the type of s have the same values
}

// bundleSteps returns the steps of a bundle, starting with the Peek that opened it.
func (m *mailbox) bundleSteps(b *repository.FoundBundle) []Step {
	opened := Step{
		What: StepOpened, At: b.Opened,
		Text: fmt.Sprintf("A Peek opened bundle %s with %s.", b.ID, countOf(b.Count, "event")),
		Details: []Detail{
			{"bundle", b.ID.String()},
			{"group", b.Group.String()},
			{"cabinet", cabinetText(b.Cabinet)},
			{"numbers", fmt.Sprintf("%d to %d", b.First, b.Last)},
			{"weight", fmt.Sprintf("%d KB", b.Weight)},
			{"content", string(b.Content)},
		},
	}
	opened.Details = append(opened.Details, spanDetails(b.Peeked)...)
	steps := []Step{opened}
	if b.Content == domain.Request {
		steps = append(steps, contentSteps(&b.Bundle)...)
	}
	records := m.recordsOf(b.ID)
	isClosedByRecord := false
	for i := range records {
		steps = append(steps, recordStep(&records[i]))
		isClosedByRecord = isClosedByRecord || records[i].What != "look"
	}
	switch {
	case b.State == repository.BundleDequeued:
		steps = append(steps, Step{What: StepDequeued, At: b.Closed, Text: fmt.Sprintf("Actor %s dequeued the bundle.", m.actor)})
		if b.Content == domain.Request && m.findNotice(b.ID, domain.ForDomain) == nil {
			steps = append(steps, Step{What: StepNotified, Text: fmt.Sprintf("Domain %s was notified of the Dequeue. The time is not stored.", b.Cabinet.Origin)})
		}
	case isClosedByRecord:
	case b.State == repository.BundleSkipped:
		steps = append(steps, Step{What: StepSkipped, At: b.Closed, Text: "An operator skipped the bundle. The record is no longer stored."})
	case b.State == repository.BundleReleased:
		steps = append(steps, Step{What: StepReleased, At: b.Closed, Text: "An operator released the bundle. The record is no longer stored."})
	}
	return steps
}

// contentSteps returns the steps of a bundle's content request, whose times are not stored.
func contentSteps(b *domain.Bundle) (steps []Step) {
	origin := b.Cabinet.Origin
	if b.Object != "" {
		steps = append(steps, Step{
			What: StepAnswered, Text: fmt.Sprintf("Domain %s produced the requested content. The time is not stored.", origin),
			Details: []Detail{{"object", b.Object}, {"bytes", strconv.FormatInt(b.Body.Length, 10)}},
		})
	}
	if b.Gone {
		steps = append(steps, Step{What: StepLost, Text: "The content was deleted. The time is not stored."})
	}
	if t := b.ContentFailure; t.Failures > 0 {
		steps = append(steps, Step{
			What: StepFailed, Text: fmt.Sprintf("Domain %s failed to produce the requested content, %s in a row. The times are not stored.", origin, countOf(t.Failures, "time")),
			Details: []Detail{{"reason", t.Reason}, {"text", t.Text}},
		})
	}
	return steps
}

// recordStep returns the step for one record of an operator's action.
func recordStep(r *repository.Record) Step {
	kinds := map[string]StepKind{"look": StepRead, "release": StepReleased, "skip": StepSkipped, "replay": StepReplayed, "freeze": StepFrozen}
	texts := map[string]string{
		"look":    "%s looked at the payloads of the bundle.",
		"release": "%s released the bundle: its events wait again.",
		"skip":    "%s skipped the bundle: its events are not delivered again.",
		"replay":  "%s replayed the bundle: it was opened again.",
		"freeze":  "%s froze the mailbox.",
	}
	return Step{What: kinds[r.What], At: r.When, Text: fmt.Sprintf(texts[r.What], r.Who), Details: []Detail{{"why", r.Why}}}
}

// bundleWaits returns the reasons why a bundle waits.
func (m *mailbox) bundleWaits(b *repository.FoundBundle) (waits []Wait) {
	if b.State == repository.BundleOpen {
		if b.Frozen {
			waits = append(waits, m.frozenWait())
		}
		return append(waits, m.openWaits(&b.Bundle)...)
	}
	for _, n := range m.notices {
		if n.Bundle == b.ID {
			waits = append(waits, noticeWait(&n))
		}
	}
	return waits
}

// openWaits returns the reasons why an open bundle waits, except that its mailbox is frozen.
func (m *mailbox) openWaits(b *domain.Bundle) (waits []Wait) {
	if w, lacks := m.contentWait(b); lacks {
		return []Wait{w}
	}
	return []Wait{{
		Cause: CauseNotDequeued, Since: b.Opened,
		Text: fmt.Sprintf("Bundle %s is open. Each Peek of group %s returns it until actor %s dequeues it.", b.ID, b.Group, m.actor),
		Next: fmt.Sprintf("Ask the actor why it does not dequeue the bundle. An operator can release or skip it: messagehub queue release %s %s --why ...", m.actor, b.ID),
	}}
}

// contentWait returns the wait for the content of a bundle. It returns false if the content is stored.
func (m *mailbox) contentWait(b *domain.Bundle) (Wait, bool) {
	origin, t := b.Cabinet.Origin, b.ContentFailure
	switch {
	case !b.LacksContent():
		return Wait{}, false
	case t.Failures > 0:
		return Wait{
			Cause: CauseDomainFailing, Since: b.Opened,
			Text: fmt.Sprintf("Domain %s failed to produce the content of bundle %s, %s in a row. The last reason: %s %s", origin, b.ID, countOf(t.Failures, "time"), t.Reason, t.Text),
			Next: fmt.Sprintf("Repair the domain: each Peek sends the content request again. If the domain cannot produce this content now, an operator can release the bundle, and its events wait again: messagehub queue release %s %s --why ...", m.actor, b.ID),
		}, true
	case b.Gone:
		return Wait{
			Cause: CauseContentGone, Since: b.Opened,
			Text: fmt.Sprintf("The content of bundle %s was deleted. The next Peek requests the content from domain %s again.", b.ID, origin),
			Next: "Let the actor peek. Do not delete objects from the content store before their bundles are dequeued.",
		}, true
	}
	return Wait{
		Cause: CauseDomainSilent, Since: b.Opened,
		Text: fmt.Sprintf("Domain %s has not produced the content of bundle %s yet. Each Peek requests it.", origin, b.ID),
		Next: fmt.Sprintf("Check whether domain %s receives content requests from its queue, and whether the actor peeks again.", origin),
	}, true
}

// noticeWait returns the wait for a notice that is not delivered.
func noticeWait(n *domain.Notice) Wait {
	to, next := fmt.Sprintf("domain %s", n.Origin), "Read in the log of the hub why notices fail, and check whether the queue of the domain can be reached. The hub retries automatically."
	switch n.Audience {
	case domain.ForDomain:
	case domain.ForSubscribers:
		to, next = "the subscriptions of the actor", "Read in the log of the hub why the notice cannot be published. The hub retries automatically."
	case domain.ForWatchers, domain.ForWatchersOfRemoval:
		to, next = "the watches of the bundle", "Read in the log of the hub why the notice cannot be published. The hub retries automatically."
	}
	return Wait{Cause: CauseNotice, Since: n.Since, Text: fmt.Sprintf("The notice of bundle %s for %s was not delivered.", n.Bundle, to), Next: next}
}

func cabinetText(k domain.CabinetKey) string { return k.Origin.String() + " " + k.ContentType.String() }
