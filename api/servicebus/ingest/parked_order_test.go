package ingest_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// A flickeringStore reports damage for one recipient a limited number of times.
type flickeringStore struct {
	*damagedStore
	damaged, slow domain.ActorID

	mu   sync.Mutex
	left int // number of reports of damage that are still to come
}

func (s *flickeringStore) Save(ctx context.Context, to domain.ActorID, events []domain.Event) (repository.Saved, error) {
	if to == s.slow {
		<-time.After(time.Second)
	}
	if to == s.damaged && s.reportsDamage() {
		return repository.Saved{}, domain.Errorf(domain.Damaged, "for a moment")
	}
	return s.damagedStore.Save(ctx, to, events)
}

func (s *flickeringStore) reportsDamage() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left--
	return s.left >= 0
}

func TestAMailboxOfANewerFormat_DoesNotHastenADeadLetter(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		newer, other := rt.NewActor(), rt.NewActor()
		d := s.damageMailboxes()
		d.has(domain.Errorf(domain.NewerFormat, "the head has format 2"), newer)
		slow := &flickeringStore{damagedStore: d, damaged: other, slow: rt.NewActor(), left: 2}
		s.hub.Hub = hub.New(slow, s.store, s.store, hub.Options{})
		out := s.sender(plainRecipient)
		out.sendEvents(rt.Event(slow.slow)) // later messages to this recipient wait
		for i := range 3 {
			out.sendEvents(rt.Events(3, newer)[i])
			out.sendEvents(rt.Events(3, other)[i])
		}
		stop := s.startIngestion()
		<-time.After(time.Minute)
		stop()
		require.Zero(t, s.metric("messages_dead_lettered_total"))
	})
}

func TestAMailboxOfANewerFormat_KeepsTheOrderOfOthers(t *testing.T) {
	for name, damages := range map[string]int{"that are sound": 0, "that are damaged for a moment": 1} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newSite(t)
				newer, other := rt.NewActor(), rt.NewActor()
				d := s.damageMailboxes()
				d.has(domain.Errorf(domain.NewerFormat, "the head has format 2"), newer)
				s.hub.Hub = hub.New(&flickeringStore{damagedStore: d, damaged: other, left: damages}, s.store, s.store, hub.Options{})
				out := s.sender(plainRecipient)
				first, second := rt.Events(2, newer), rt.Events(2, other)
				stop := s.startIngestion()
				out.sendEvents(first[0])
				<-time.After(time.Second)
				out.sendEvents(first[1], second[0])
				<-time.After(5 * time.Millisecond)
				out.sendEvents(second[1])
				<-time.After(5 * time.Minute)
				require.EqualValues(t, len(second), s.metric("events_accepted_total"), "those of the other mailbox")
				d.has(nil, newer)
				<-time.After(5 * time.Minute)
				stop()
				s.has(newer, first...)
				s.has(other, second...)
			})
		})
	}
}
