package explorer

import (
	"fmt"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// changes are what the bundles of a scenario have in common.
func (s *Scenario) changes() []func(*domain.Bundle) {
	if s.Requests {
		return []func(*domain.Bundle){repositorytest.Requested}
	}
	return nil
}

// firstObject is the content of the bundle that a preparation opens.
const firstObject = "contents/first"

// MarksGone marks the first content as deleted, as a ledger or a download does.
func (m *Member) MarksGone() {
	b, err := m.node.MarkGone(m.ctx, actor, firstBundle, firstObject)
	m.see(sight{what: "marked", bundle: repositorytest.Peeked{Bundle: b}, err: err})
}

// Fetches peeks as the hub does: where the content is missing or marked, its domain makes another one.
// An object has a name of its own for each answer.
func (m *Member) Fetches() {
	for n := 0; ; n++ {
		b, some := m.Peeks()
		if !some || !b.LacksContent() {
			return
		}
		object := fmt.Sprintf("contents/%c-%d", 'a'+m.name, n)
		body := domain.Body{Length: int64(len(object))}
		var err error
		if b.Object != "" {
			b.Bundle, err = m.node.AnswerAgain(m.ctx, actor, b.ID, b.Object, object, body)
		} else {
			b.Bundle, err = m.node.Answer(m.ctx, actor, b.ID, object, body)
		}
		switch {
		case domain.KindOf(err) == domain.NotFound: // it was closed meanwhile
		case err != nil:
			m.see(sight{what: "peeked", err: err})
			return
		case !b.LacksContent():
			m.see(sight{what: "peeked", bundle: b})
			return
		}
	}
}

// answered opens the first bundle and answers it.
func answered(m *Member) {
	m.Peeks()
	if _, err := m.node.Answer(m.ctx, actor, firstBundle, firstObject, domain.Body{Length: 5}); err != nil {
		panic(err) // nothing else is under way
	}
	m.Peeks()
}

func marks() Party { return does("mark", (*Member).MarksGone) }

func fetches(name string) Party { return does(name, (*Member).Fetches) }

// contentScenarios returns those in which the content of an open bundle is deleted.
func contentScenarios() []*Scenario {
	opened := prepareSaves(list{events(1, 3)}, answered)
	marked := prepareSaves(list{events(1, 3)}, answered, (*Member).MarksGone)
	return []*Scenario{
		{
			Name: "content-gone-fetch-dequeue", Quick: true, Text: "the content of a bundle is deleted while it is peeked and dequeued; a lost reply",
			Requests: true, Lost: 1, Prepare: opened,
			Parties: []Party{marks(), fetches("fetch"), dequeues("dequeue")},
		},
		{
			Name: "content-gone-fetch-stale", Quick: true, Text: "the same without a Dequeue on a Session account, a crash, a stale read",
			Requests: true, Session: true, Stale: 1, Behind: 2, Crashes: 1, Prepare: opened,
			Parties: []Party{marks(), fetches("fetch")},
		},
		{
			Name: "content-gone-then-fetch", Quick: true, Text: "a Peek begins when the mark is answered, on a Session account; a lost reply, a stale read",
			Requests: true, Session: true, Lost: 1, Stale: 1, Behind: 2, Prepare: opened,
			Parties: []Party{marks(), fetches("fetch").startingAfter(1)},
		},
		{
			Name: "content-gone-fetch-fetch", Quick: true, Text: "two processes have deleted content made again; a crash, a lost reply",
			Requests: true, Crashes: 1, Lost: 1, Prepare: marked,
			Parties: []Party{fetches("fetch a"), fetches("fetch b")},
		},
		{
			Name: "content-gone-twice", Text: "deleted content is made again while its mark comes a second time, and it is dequeued; a lost reply, a stale read",
			Requests: true, Session: true, Lost: 1, Stale: 1, Prepare: marked,
			Parties: []Party{marks(), fetches("fetch"), dequeues("dequeue")},
		},
	}
}
