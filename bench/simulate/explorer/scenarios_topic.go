package explorer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/publish"
	"github.com/messagehub/messagehub/repository"
)

// newTopicRelay returns a relay of the topic of objects, or nil if the scenario has no topic. It records the changes
// that the member stores for the topic.
func (m *Member) newTopicRelay() *publish.ObjectRelay {
	if !m.scenario.Topic {
		return nil
	}
	service := publish.New(m.push, func(domain.StreamName, []domain.Message, []repository.Appended) {})
	relay := publish.NewObjectRelay(m.objects.Topic(), service, publish.ObjectRelayOptions{Clock: m.scenario.nodeOptions(0).Clock})
	m.objects.Topic().Observe(func(c domain.ObjectChange) { m.stored = append(m.stored, c) })
	return relay
}

// FindChanges reads the changes that the preparation stored for the topic and did not publish. It is part of the
// preparation, so the explorer does not explore its query over all partitions.
func (m *Member) FindChanges() {
	m.scenario.left = mustSucceed(m.objects.Topic().Unpublished(m.ctx, startTime.Add(time.Hour), repository.MaxAppend))
}

// RelayLeft publishes the changes that FindChanges found.
func (m *Member) RelayLeft() {
	m.noteSight(sight{what: "published", err: m.topic.Publish(m.ctx, m.scenario.left)})
}

// RelayStored publishes the changes that the member has stored for the topic.
func (m *Member) RelayStored() {
	if len(m.stored) > 0 {
		m.noteSight(sight{what: "published", err: m.topic.Publish(m.ctx, m.stored)})
	}
}

// verifyTopic makes a new node publish the remaining changes. It returns an error unless the stream contains each
// change once, and the changes lead to the current state of the object.
func (v *endVerifier) verifyTopic(s *explorationState) error {
	for i := range v.Parties {
		for k := range s.nodes[i].sights {
			if err := v.checkSight(&s.nodes[i].sights[k]); err != nil {
				return fmt.Errorf("%s: %w", v.Parties[i].Name, err)
			}
		}
	}
	m := v.newMember(context.Background(), v.db, nil, v.options, 77)
	left, err := m.objects.Topic().Unpublished(m.ctx, startTime.Add(time.Hour), repository.MaxAppend)
	if err == nil && len(left) > 0 {
		err = m.topic.Publish(m.ctx, left)
	}
	if err != nil {
		return fmt.Errorf("a fresh node publishes: %w", err)
	}
	if left, err = m.objects.Topic().Unpublished(m.ctx, startTime.Add(time.Hour), repository.MaxAppend); err != nil || len(left) > 0 {
		return errors.Join(fmt.Errorf("%d published changes are still stored for the topic", len(left)), err)
	}
	found, err := m.push.Read(m.ctx, domain.ObjectsStream(), domain.Position{}, 100)
	if err != nil {
		return err
	}
	object, err := m.objects.Object(m.ctx, objectName("key"))
	if err != nil {
		return err
	}
	return checkTopicEvents(found.Entries, &object)
}

// checkTopicEvents returns an error unless the events of a topic, sorted by version, lead to the state of an object.
func checkTopicEvents(entries []repository.Entry, object *domain.Object) error {
	type event struct {
		Event   domain.ObjectStateEvent
		Version int64
		ID      string
	}
	events := make([]event, len(entries))
	for i := range entries {
		if err := json.Unmarshal(entries[i].Payload, &events[i]); err != nil {
			return err
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.Version, b.Version) })
	var before event
	for _, e := range events {
		exists := before.Event != "" && before.Event != domain.StateDeleted
		if e.Version == before.Version || (e.Event == domain.StateCreated) == exists {
			return fmt.Errorf("the topic has %s at version %d after %s at version %d", e.Event, e.Version, before.Event, before.Version)
		}
		before = e
	}
	current := object.Current
	switch {
	case before.Version != object.StateVersion, (current == nil) != (before.Event == domain.StateDeleted),
		current != nil && before.ID != domain.ObjectID{Name: object.Name, Row: current.ID()}.String():
		return fmt.Errorf("the object has state %d and the current row %v, and the last event of the topic is %+v", object.StateVersion, current, before)
	}
	return nil
}

// topicScenarios returns the scenarios in which nodes store events of an object and publish its changes.
func topicScenarios() []*Scenario {
	created := prepareWith(ingestAll(reportsOf("key", "[C@10]")), (*Member).FindChanges)
	relay := partyOf("relay", (*Member).RelayLeft)
	publishing := func(name, script string) Party {
		p := partyOf(name, ingestAll(reportsOf("key", script)), (*Member).RelayStored)
		p.Messages = [][]repository.ObjectReport{reportsOf("key", script)}
		return p
	}
	return []*Scenario{
		{
			Name: "topic-relay-relay", Quick: true, Text: "two nodes publish the creation of an object to the topic; a crash, a lost reply",
			Objects: true, Topic: true, Crashes: 1, Lost: 1, Prepare: created,
			Parties: []Party{relay, partyOf("relay again", (*Member).RelayLeft)},
		},
		{
			Name: "topic-delete-relay", Quick: true, Text: "a node deletes an object and publishes that, another publishes its creation; a crash, a lost reply",
			Objects: true, Topic: true, Crashes: 1, Lost: 1, Prepare: created,
			Parties: []Party{publishing("deleted", "[D@20]"), relay},
		},
		{
			Name: "topic-delete-create", Quick: true, Text: "two nodes delete an object and create it again, and each publishes that; a crash, a lost reply",
			Objects: true, Topic: true, Crashes: 1, Lost: 1, Prepare: created,
			Parties: []Party{publishing("deleted", "[D@20]"), publishing("created", "[C@30]")},
		},
	}
}
