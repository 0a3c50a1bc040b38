package find

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// addBundles adds the bundles with an id, of one actor or of all. If a bundle of one actor is
// no longer retained, there may still be records of operators.
func (s *Service) addBundles(ctx context.Context, a *Answer, id domain.BundleID, actor domain.ActorID) error {
	search, err := s.ports.Finder.FindBundle(ctx, id, actor, s.opts.Limit)
	if err != nil {
		return err
	}
	a.addUnread(search.Unread...)
	if search.HasMore {
		a.note("There are more bundles with this id. Name the actor to see its own one.")
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

// addBundle adds a bundle.
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

// addRecords adds the actions of operators on a bundle that is no longer stored.
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
	r.Notes = append(r.Notes, "The bundle is not stored any longer: its retention has passed. What is left are the records of operators.")
	a.add(r)
	return nil
}

// finish adds the wait for a frozen mailbox, and orders the steps.
func (r *Result) finish(m *mailbox, isFrozen bool) {
	sortSteps(r.Steps)
	if !isFrozen {
		return
	}
	if f := m.freeze(); f != nil {
		i := slices.IndexFunc(r.Steps, func(s Step) bool { return s.At.After(f.When) })
		if i < 0 {
			i = len(r.Steps)
		}
		r.Steps = slices.Insert(r.Steps, i, recordStep(f))
	}
}

func bundleState(s repository.BundleState) State {
	return State(s) // the same words
}

// bundleSteps returns the steps of a bundle, beginning with the Peek that opened it.
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
		if b.Content == domain.Request && m.notice(b.ID, domain.ForDomain) == nil {
			steps = append(steps, Step{What: StepNotified, Text: fmt.Sprintf("Domain %s was notified of it. When is not stored.", b.Cabinet.Origin)})
		}
	case isClosedByRecord:
	case b.State == repository.BundleSkipped:
		steps = append(steps, Step{What: StepSkipped, At: b.Closed, Text: "An operator skipped the bundle. The record is not stored any longer."})
	case b.State == repository.BundleReleased:
		steps = append(steps, Step{What: StepReleased, At: b.Closed, Text: "An operator released the bundle. The record is not stored any longer."})
	}
	return steps
}

// contentSteps returns the steps of a domain that produces the content of a bundle. Their times
// are not stored.
func contentSteps(b *domain.Bundle) (steps []Step) {
	origin := b.Cabinet.Origin
	if b.Object != "" {
		steps = append(steps, Step{
			What: StepAnswered, Text: fmt.Sprintf("Domain %s was asked for the content and has made it. When is not stored.", origin),
			Details: []Detail{{"object", b.Object}, {"bytes", strconv.FormatInt(b.Body.Length, 10)}},
		})
	}
	if b.Gone {
		steps = append(steps, Step{What: StepLost, Text: "The content was deleted. When is not stored."})
	}
	if t := b.ContentFailure; t.Failures > 0 {
		steps = append(steps, Step{
			What: StepFailed, Text: fmt.Sprintf("Domain %s was asked for the content and has failed, %s in a row. When is not stored.", origin, countOf(t.Failures, "time")),
			Details: []Detail{{"reason", t.Reason}, {"text", t.Text}},
		})
	}
	return steps
}

// recordStep returns the step of an operator's record.
func recordStep(r *repository.Record) Step {
	kinds := map[string]StepKind{"look": StepLooked, "release": StepReleased, "skip": StepSkipped, "replay": StepReplayed, "freeze": StepFrozen}
	texts := map[string]string{
		"look":    "%s looked at the payloads of the bundle.",
		"release": "%s released the bundle: its events wait again.",
		"skip":    "%s skipped the bundle: its events are not handed out again.",
		"replay":  "%s replayed the bundle: it was opened again.",
		"freeze":  "%s froze the mailbox.",
	}
	return Step{What: kinds[r.What], At: r.When, Text: fmt.Sprintf(texts[r.What], r.Who), Details: []Detail{{"why", r.Why}}}
}

// bundleWaits returns what a bundle waits for.
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

// openWaits returns what an open bundle waits for, except for the end of a freeze.
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

// contentWait returns the wait of a bundle for its content, and false if the bundle has its
// content.
func (m *mailbox) contentWait(b *domain.Bundle) (Wait, bool) {
	origin, t := b.Cabinet.Origin, b.ContentFailure
	switch {
	case !b.LacksContent():
		return Wait{}, false
	case t.Failures > 0:
		return Wait{
			Cause: CauseDomainFailing, Since: b.Opened,
			Text: fmt.Sprintf("Domain %s has failed to make the content of bundle %s, %s in a row. The last reason: %s %s", origin, b.ID, countOf(t.Failures, "time"), t.Reason, t.Text),
			Next: fmt.Sprintf("Repair the domain: each Peek asks it again. An operator can release or skip the bundle: messagehub queue skip %s %s --why ...", m.actor, b.ID),
		}, true
	case b.Gone:
		return Wait{
			Cause: CauseContentGone, Since: b.Opened,
			Text: fmt.Sprintf("The content of bundle %s was deleted. The next Peek asks domain %s for it again.", b.ID, origin),
			Next: "Have the actor peek, and keep objects in the content store until their bundles are dequeued.",
		}, true
	}
	return Wait{
		Cause: CauseDomainSilent, Since: b.Opened,
		Text: fmt.Sprintf("Domain %s has not made the content of bundle %s yet. Each Peek asks it.", origin, b.ID),
		Next: fmt.Sprintf("See whether domain %s takes requests from its queue, and whether the actor peeks again.", origin),
	}, true
}

// noticeWait returns the wait of a notice that was not delivered.
func noticeWait(n *domain.Notice) Wait {
	to, next := fmt.Sprintf("domain %s", n.Origin), "See in the log of the hub why notices fail, and whether the queue of the domain can be reached. The hub tries again by itself."
	switch n.Audience {
	case domain.ForDomain:
	case domain.ForSubscribers:
		to, next = "the subscriptions of the actor", "See in the log of the hub why it cannot be published. The hub tries again by itself."
	case domain.ForWatchers, domain.ForWatchersOfRemoval:
		to, next = "those who watch the bundle", "See in the log of the hub why it cannot be published. The hub tries again by itself."
	}
	return Wait{Cause: CauseNotice, Since: n.Since, Text: fmt.Sprintf("The notice of bundle %s for %s was not delivered.", n.Bundle, to), Next: next}
}

func cabinetText(k domain.CabinetKey) string { return k.Origin.String() + " " + k.ContentType.String() }
