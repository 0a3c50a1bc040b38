package explorer

import (
	"fmt"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// bundleChanges returns the changes that apply to all bundles of a scenario.
func (s *Scenario) bundleChanges() []func(*domain.Bundle) {
	if s.Requests {
		return []func(*domain.Bundle){repositorytest.OnRequest}
	}
	return nil
}

// firstObject is the name of the content of the bundle that the preparation opens.
const firstObject = "contents/first"

// MarkGone marks firstObject as deleted, as a hub does after a deletion event or a failed download.
func (m *Member) MarkGone() {
	b, err := m.node.MarkGone(m.ctx, recipient, firstBundle, firstObject)
	m.noteSight(sight{what: "marked", bundle: repositorytest.PeekedBundle{Bundle: b}, err: err})
}

// Fetch peeks as the hub does. If the content of the bundle is missing or marked as deleted, the domain produces it
// again. Each time, the domain uses a new object name.
func (m *Member) Fetch() {
	for n := 0; ; n++ {
		b, some := m.Peek()
		if !some || !b.LacksContent() {
			return
		}
		object := fmt.Sprintf("contents/%c-%d", 'a'+m.name, n)
		body := domain.Body{Length: int64(len(object))}
		var err error
		if b.Object != "" {
			b.Bundle, err = m.node.ReplaceAnswer(m.ctx, recipient, b.ID, b.Object, object, body)
		} else {
			b.Bundle, err = m.node.Answer(m.ctx, recipient, b.ID, object, body)
		}
		switch {
		case domain.KindOf(err) == domain.NotFound: // a different party has dequeued the bundle
		case err != nil:
			m.noteSight(sight{what: "peeked", err: err})
			return
		case !b.LacksContent():
			m.noteSight(sight{what: "peeked", bundle: b})
			return
		}
	}
}

// answerFirst opens the first bundle, and stores firstObject as its content.
func answerFirst(m *Member) {
	m.Peek()
	if _, err := m.node.Answer(m.ctx, recipient, firstBundle, firstObject, domain.Body{Length: 5}); err != nil {
		panic(err) // a preparation has no conflicts or faults
	}
	m.Peek()
}

func marker() Party { return partyOf("mark", (*Member).MarkGone) }

func fetcher(name string) Party { return partyOf(name, (*Member).Fetch) }

// contentScenarios returns the scenarios in which the content of an open bundle is deleted.
func contentScenarios() []*Scenario {
	opened := prepareSaves(list{eventsOf(1, 3)}, answerFirst)
	marked := prepareSaves(list{eventsOf(1, 3)}, answerFirst, (*Member).MarkGone)
	return []*Scenario{
		{
			Name: "content-gone-fetch-dequeue", Quick: true, Text: "the content of a bundle is deleted while it is peeked and dequeued; a lost reply",
			Requests: true, Lost: 1, Prepare: opened,
			Parties: []Party{marker(), fetcher("fetch"), dequeuer("dequeue")},
		},
		{
			Name: "content-gone-fetch-stale", Quick: true, Text: "the same without a Dequeue on a Session account, a crash, a stale read",
			Requests: true, Session: true, Stale: 1, Behind: 2, Crashes: 1, Prepare: opened,
			Parties: []Party{marker(), fetcher("fetch")},
		},
		{
			Name: "content-gone-then-fetch", Quick: true, Text: "a Peek begins when the mark is answered, on a Session account; a lost reply, a stale read",
			Requests: true, Session: true, Lost: 1, Stale: 1, Behind: 2, Prepare: opened,
			Parties: []Party{marker(), fetcher("fetch").startAfter(1)},
		},
		{
			Name: "content-gone-fetch-fetch", Quick: true, Text: "two processes have deleted content made again; a crash, a lost reply",
			Requests: true, Crashes: 1, Lost: 1, Prepare: marked,
			Parties: []Party{fetcher("fetch a"), fetcher("fetch b")},
		},
		{
			Name: "content-gone-twice", Text: "deleted content is created again while its deletion is reported a second time, and it is dequeued; a lost reply, a stale read",
			Requests: true, Session: true, Lost: 1, Stale: 1, Prepare: marked,
			Parties: []Party{marker(), fetcher("fetch"), dequeuer("dequeue")},
		},
	}
}
