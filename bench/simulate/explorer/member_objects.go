package explorer

import (
	"time"

	"github.com/messagehub/messagehub/cosmos/objects"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

// objectName returns the name of an object in the bucket of the scenarios.
func objectName(key string) domain.ObjectName {
	return mustSucceed(domain.ParseObjectName("bucket", key))
}

// reportsOf returns the events of a script of package objecttest as one message. All events are about the object key.
func reportsOf(key, script string) (all []repository.ObjectReport) {
	for _, events := range objecttest.Calls(script) {
		for _, e := range events {
			e.Carrier.Message += script // !!
			all = append(all, repository.ObjectReport{Name: objectName(key), ObjectEvent: e})
		}
	}
	return all
}

// objectOptions returns the options of an object store. The document of an object holds two rows, so that most
// decisions concern spilled rows. In a scenario that forgets rows, all rows of the preparation are old when the parties
// begin.
func (s *Scenario) objectOptions(random func() uint64, isPreparing bool) objects.Options {
	o := objects.Options{Shards: 1, Limits: domain.ObjectLimits{Rows: 2}, Topic: s.Topic, Clock: func() time.Time { return startTime }, Random: random}
	if s.Forgets {
		k := keepingAt(isPreparing)
		o.Retention, o.Clock = k.Retention, k.Clock
	}
	return o
}

// Ingest delivers a message.
func (m *Member) Ingest(message []repository.ObjectReport) {
	results, err := m.objects.Ingest(m.ctx, message)
	for _, r := range results {
		if err == nil {
			err = r.Err
		}
	}
	m.noteSight(sight{what: "ingested", reports: message, err: err})
}

// ingestAll returns a function that delivers messages.
func ingestAll(messages ...[]repository.ObjectReport) func(*Member) {
	return func(m *Member) {
		for _, message := range messages {
			m.Ingest(message)
		}
	}
}
