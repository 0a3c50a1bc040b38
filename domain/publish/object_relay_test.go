package publish_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/domain/publish"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// A relayWorld contains a store of objects, and one node's ObjectRelay.
type relayWorld struct {
	*testing.T
	objects *memory.Objects
	streams *failingStreams
	relay   *publish.ObjectRelay
	called  int // number of messages about which the relay notified the receivers
}

// A failingStreams fails the first appends. If isAfter is set, it executes these appends before it
// fails.
type failingStreams struct {
	repository.Streams
	failures int
	isAfter  bool
	tried    []time.Time
}

func (s *failingStreams) Append(ctx context.Context, stream domain.StreamName, messages []domain.Message) ([]repository.Appended, error) {
	s.tried = append(s.tried, time.Now())
	if s.failures == 0 {
		return s.Streams.Append(ctx, stream, messages)
	}
	s.failures--
	if s.isAfter {
		if _, err := s.Streams.Append(ctx, stream, messages); err != nil {
			return nil, err
		}
	}
	return nil, domain.Errorf(domain.Unavailable, "the store is not reachable")
}

func newRelayWorld(t *testing.T) *relayWorld {
	w := &relayWorld{T: t, objects: memory.NewObjects(), streams: &failingStreams{Streams: memory.NewStreams(time.Hour, time.Now)}}
	service := publish.New(w.streams, func(stream domain.StreamName, _ []domain.Message, appended []repository.Appended) {
		require.Equal(t, domain.ObjectsStream(), stream)
		for _, a := range appended {
			if a.Outcome == repository.AppendedNow {
				w.called++
			}
		}
	})
	w.relay = publish.NewObjectRelay(w.objects.Topic(), service, publish.ObjectRelayOptions{})
	return w
}

// ingestScript stores a script's events for one object.
func (w *relayWorld) ingestScript(key, script string) {
	w.Helper()
	name, err := domain.ParseObjectName("bucket", key)
	require.NoError(w, err)
	for _, events := range objecttest.Calls(script) {
		_, err := w.objects.Ingest(w.Context(), []repository.ObjectReport{{Name: name, ObjectEvent: events[0]}})
		require.NoError(w, err)
	}
}

// takePublished returns the topic's new events, such as "a created". It requires that all changes
// were published.
func (w *relayWorld) takePublished() (events []string) {
	w.Helper()
	left, err := w.objects.Topic().Unpublished(w.Context(), time.Now().Add(time.Hour), 1000)
	require.NoError(w, err)
	require.Empty(w, left)
	found, err := w.streams.Read(w.Context(), domain.ObjectsStream(), domain.Position{}, 1000)
	require.NoError(w, err)
	require.Equal(w, len(found.Entries), w.called)
	for _, e := range found.Entries {
		var data struct{ Key, Event string }
		require.NoError(w, json.Unmarshal(e.Payload, &data))
		events = append(events, data.Key+" "+data.Event)
	}
	return events
}

// runRelay runs the relay for a minute of simulated time, enough to publish all changes.
func (w *relayWorld) runRelay() {
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.relay.Run(ctx) }()
	<-time.After(time.Minute) // takes no real time in the synctest bubble
	synctest.Wait()
	cancel()
	<-ended
}

var allEvents = []string{"a created", "b created", "a updated", "a deleted"}

func TestObjectRelay_PublishesEachChangeInItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRelayWorld(t)
		w.ingestScript("a", "[C@01]")
		w.ingestScript("b", "[C@01] [C@01]")
		w.ingestScript("a", "[C@02] [D@03]")
		w.runRelay()
		require.Equal(t, allEvents, w.takePublished())
	})
}

func TestObjectRelay_RetriesFailedAppends(t *testing.T) {
	for _, isAfter := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newRelayWorld(t)
			w.streams.failures, w.streams.isAfter = 3, isAfter
			w.ingestScript("a", "[C@01]")
			w.ingestScript("b", "[C@01]")
			w.ingestScript("a", "[C@02] [D@03]")
			w.runRelay()
			if isAfter {
				w.called += len(allEvents) // the append failed after it was executed, so the relay did not notify the receivers
			}
			require.Equal(t, allEvents, w.takePublished())
		})
	}
}

// The jitter prevents nodes that fail at the same time from retrying at the same time.
func TestObjectRelay_VariesItsPausesByItsRandomSource(t *testing.T) {
	for _, test := range []struct {
		random uint64
		want   []time.Duration
	}{
		{0, []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond}},
		{uint64(75 * time.Millisecond), []time.Duration{125 * time.Millisecond, 175 * time.Millisecond, 275 * time.Millisecond}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newRelayWorld(t)
			service := publish.New(w.streams, func(domain.StreamName, []domain.Message, []repository.Appended) { w.called++ })
			w.relay = publish.NewObjectRelay(w.objects.Topic(), service, publish.ObjectRelayOptions{Random: func() uint64 { return test.random }})
			w.streams.failures = len(test.want)
			w.ingestScript("a", "[C@01]")
			w.runRelay()
			var pauses []time.Duration
			for i, at := range w.streams.tried[1:] {
				pauses = append(pauses, at.Sub(w.streams.tried[i]))
			}
			require.Equal(t, test.want, pauses)
			require.Equal(t, []string{"a created"}, w.takePublished())
		})
	}
}

// If all attempts for a change fail, or if its node dies, QueueUnpublished finds the change after
// minAge.
func TestObjectRelay_FindsUnpublishedChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRelayWorld(t)
		w.streams.failures = 5
		w.ingestScript("a", "[C@01] [C@02]")
		require.False(t, w.relay.QueueUnpublished(t.Context()), "it is younger than minAge")
		w.runRelay()
		require.True(t, w.relay.QueueUnpublished(t.Context()))
		w.relay.QueueUnpublished(t.Context()) // this call queues each change a second time
		w.runRelay()
		require.Equal(t, []string{"a created", "a updated"}, w.takePublished())
		require.False(t, w.relay.QueueUnpublished(t.Context()))
	})
}

// A failingRemoval cannot delete published changes, as if the node had died.
type failingRemoval struct{ repository.ObjectTopic }

func (failingRemoval) Remove(context.Context, []domain.ObjectChange) error {
	return errors.New("the node ends")
}

func TestObjectRelay_PublishesNoChangeTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRelayWorld(t)
		w.ingestScript("a", "[C@01]")
		left, err := w.objects.Topic().Unpublished(t.Context(), time.Now().Add(time.Hour), 10)
		require.NoError(t, err)
		crashing := publish.NewObjectRelay(failingRemoval{w.objects.Topic()}, publish.New(w.streams, func(domain.StreamName, []domain.Message, []repository.Appended) { w.called++ }), publish.ObjectRelayOptions{})
		require.Error(t, crashing.Publish(t.Context(), left))
		require.NoError(t, w.relay.Publish(t.Context(), left))
		require.Equal(t, []string{"a created"}, w.takePublished())
	})
}

// If a message with the id of a change was already published with different content, the change
// waits until the stream no longer stores this id. Other changes do not wait for it.
func TestObjectRelay_KeepsAConflictingChange(t *testing.T) {
	w := newRelayWorld(t)
	w.ingestScript("a", "[C@01]")
	w.ingestScript("b", "[C@01]")
	left, err := w.objects.Topic().Unpublished(t.Context(), time.Now().Add(time.Hour), 10)
	require.NoError(t, err)
	other := left[0]
	other.Event = domain.StateDeleted
	require.NoError(t, w.relay.Publish(t.Context(), []domain.ObjectChange{other}))
	w.ingestScript("a", "[D@02]")
	left, err = w.objects.Topic().Unpublished(t.Context(), time.Now().Add(time.Hour), 10)
	require.NoError(t, err)
	left[0].Version = other.Version // use the version of the published deletion, so that the two events have the same id
	left[0].Event = domain.StateUpdated
	err = w.relay.Publish(t.Context(), left)
	require.Equal(t, domain.Damaged, domain.KindOf(err))
	still, err := w.objects.Topic().Unpublished(t.Context(), time.Now().Add(time.Hour), 10)
	require.NoError(t, err)
	require.Len(t, still, 1)
	require.Equal(t, "a", still[0].Name.Key())
}

// Events about objects with any name can be published.
func TestObjectRelay_PublishesObjectsOfAnyName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRelayWorld(t)
		want := []string{"a\u0000\n\u007f", strings.Repeat("\U0001F4E6", 1024), `"<é>`}
		for _, key := range want {
			w.ingestScript(key, "[C@01]")
		}
		w.runRelay()
		for i := range want {
			want[i] += " created"
		}
		require.Equal(t, want, w.takePublished())
	})
}
