package ingest_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/ingest"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// A damagedStore is a store that reports the mailboxes of some recipients as damaged.
type damagedStore struct {
	*memory.Store

	mu      sync.Mutex
	trouble map[domain.ActorID]error
}

func (d *damagedStore) Save(ctx context.Context, to domain.ActorID, events []domain.Event) (repository.Saved, error) {
	d.mu.Lock()
	err := d.trouble[to]
	d.mu.Unlock()
	if err != nil {
		return repository.Saved{}, err
	}
	return d.Store.Save(ctx, to, events)
}

func (d *damagedStore) has(trouble error, recipients ...domain.ActorID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range recipients {
		d.trouble[r] = trouble
	}
}

// damageMailboxes makes the store report that the mailboxes of recipients are damaged.
func (s *ingestSite) damageMailboxes(recipients ...domain.ActorID) *damagedStore {
	d := &damagedStore{Store: s.store, trouble: map[domain.ActorID]error{}}
	d.has(domain.Errorf(domain.Damaged, "the head makes no sense"), recipients...)
	s.hub.Hub = hub.New(d, s.store, s.store, hub.Options{})
	return d
}

func TestPlainQueue_ADamagedMailboxDoesNotAffectOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		ill, well := rt.NewActor(), rt.NewActor()
		d := s.damageMailboxes(ill)
		out := s.sender(plainRecipient)
		lost, events := rt.Events(10, ill), rt.Events(10, well)
		for i := range lost {
			out.sendEvents(lost[i], events[i])
		}
		stop := s.startIngestion(func(o *ingest.Options) { o.Limits.ReceiverMessages = 4 })
		began := time.Now()
		s.waitUntilStored(len(events))
		require.Less(t, time.Since(began), 10*time.Second)

		dead := s.deadLetters(plainRecipient, len(lost))
		require.Equal(t, "damaged", dead[0].reason)
		require.Contains(t, dead[0].description, ill.String())
		require.Contains(t, dead[0].description, "the head makes no sense")
		require.Contains(t, dead[0].description, "messagehub check")
		stop()
		require.EqualValues(t, len(lost), s.metric("messages_dead_lettered_total", "damaged", plainRecipient))
		require.Empty(t, s.deliveryCounts(""))
		require.Zero(t, s.metric("sessions_holding"))
		s.has(well, events...)

		d.has(nil, ill)
		stop = s.startIngestion(func(o *ingest.Options) { o.Registerer = nil })
		for i := range lost { // an operator resends the dead letters
			out.sendEvents(lost[i])
		}
		s.waitUntilStored(len(events) + len(lost))
		stop()
		s.has(ill, lost...)
	})
}

// A report of damage that is followed by a different error is temporary. The message does not
// become a dead letter.
func TestDamage_ThatIsTemporaryMakesNoDeadLetter(t *testing.T) {
	onBoth(t, func(t *testing.T, queue string) {
		s := newSite(t)
		tries := 0
		flicker := func(context.Context, []domain.Event) error {
			if tries++; tries%4 == 0 {
				return domain.Errorf(domain.Unavailable, "away")
			}
			return domain.Errorf(domain.Damaged, "no sense")
		}
		s.hub.before.Store(&flicker)
		stop := s.startIngestion()
		actor := rt.NewActor()
		events := rt.Events(3, actor)
		s.sendByNewClient(queue, events)
		<-time.After(5 * time.Minute)
		require.EqualValues(t, len(events), s.metric("messages_received_total"), "none was delivered again")
		s.hub.before.Store(nil)
		s.waitUntilStored(len(events))
		stop()
		require.Zero(t, s.metric("messages_dead_lettered_total"))
		s.has(actor, events...)
	})
}

// A message announces events for a damaged mailbox and a busy one. It is retried until the events
// for the busy mailbox are stored.
func TestMessage_ForADamagedAndABusyMailboxIsHeld(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		ill, busy := rt.NewActor(), rt.NewActor()
		d := s.damageMailboxes(ill)
		d.has(domain.Errorf(domain.Busy, "throttled"), busy)
		stop := s.startIngestion()
		event := rt.Event(busy)
		s.sender(plainRecipient).sendEvents(rt.Event(ill), event)
		<-time.After(5 * time.Minute)
		require.Zero(t, s.metric("messages_dead_lettered_total"))
		d.has(nil, busy)
		require.Equal(t, "damaged", s.deadLetters(plainRecipient, 1)[0].reason)
		stop()
		s.has(busy, event)
	})
}

// damagedSessions returns sessions whose messages fill the budget of held messages.
func damagedSessions() (ill []domain.ActorID, sent [][]domain.Event, change func(*ingest.Options)) {
	for range 6 {
		ill = append(ill, rt.NewActor())
		sent = append(sent, rt.Events(8, ill[len(ill)-1]))
	}
	return ill, sent, func(o *ingest.Options) {
		o.Sessions, o.Limits.Messages, o.Limits.ReceiverMessages = 7, 1, 4
	}
}

func TestSessionsWithDamagedMailboxesDoNotAffectOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		ill, sent, change := damagedSessions()
		s.damageMailboxes(ill...)
		out := s.sender(fifo)
		for _, events := range sent {
			for _, e := range events {
				out.sendEvents(e)
			}
		}
		stop := s.startIngestion(change)
		for stored := range 10 {
			<-time.After(time.Minute)
			began := time.Now()
			out.sendEvents(rt.Event(rt.NewActor()))
			s.waitUntilStored(1 + stored)
			require.Less(t, time.Since(began), 2*time.Second)
		}
		stop()
	})
}

// A session with a damaged mailbox waits for the repair. A dead letter would be a gap in the
// session, so none is made, and the pauses between attempts grow.
func TestASessionWaitsInOrderUntilItsMailboxIsRepaired(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, withLocks("PT20S", 2))
		ill, sent, change := damagedSessions()
		d := s.damageMailboxes(ill...)
		out := s.sender(fifo)
		for _, events := range sent {
			for _, e := range events {
				out.sendEvents(e)
			}
		}
		stop := s.startIngestion(change)
		<-time.After(time.Minute)
		require.True(t, s.logs.has("the mailbox of a session is damaged"))
		require.True(t, s.logs.has("the head makes no sense"))
		began := s.hub.calls.Load()
		<-time.After(10 * time.Minute)
		require.Less(t, s.hub.calls.Load()-began, int64(len(ill)*10*4*15), "each four times in at least five seconds")
		require.LessOrEqual(t, s.metric("messages_in_hand"), 20.0)

		d.has(nil, ill...)
		s.waitUntilStored(6 * 8)
		eventually(t, "all at rest", func() bool { return s.metric("messages_in_hand") == 0 })
		stop()
		for i := range ill {
			require.Empty(t, s.deliveryCounts(ill[i].String()))
			s.has(ill[i], sent[i]...)
		}
		require.Zero(t, s.metric("messages_dead_lettered_total"))
		require.Zero(t, s.metric("inversions_total"))
		require.Zero(t, s.metric("locks_lost_total"))
		require.Zero(t, s.metric("sessions_holding"))
	})
}
