//go:build unix

package crashsites

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
	"github.com/messagehub/messagehub/cosmos/push"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/publish"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

const (
	relayedKeys   = 6
	relayedRounds = 6
)

// startTopic starts the relay that publishes the changes of objects to their topic.
func (d *objectServer) startTopic(db *client.Database) {
	d.streams = push.New(db, memory.NewContent(), push.Options{Clock: d.clockNow})
	service := publish.New(d.streams, func(domain.StreamName, []domain.Message, []repository.Appended) {})
	d.relay = publish.NewObjectRelay(d.store.Topic(), service, publish.ObjectRelayOptions{
		Clock: func() time.Time { return d.clockNow().Add(time.Minute) }, // a later clock, because the relay finds only changes of a minimum age
	})
}

// A topicEvent is an event that the relay published to the topic of the objects.
type topicEvent struct {
	Bucket  string                  `json:"bucket"`
	Key     string                  `json:"key"`
	Event   domain.ObjectStateEvent `json:"event"`
	Version int64                   `json:"version"`
}

// handleTopic publishes the changes that dead nodes left unpublished, and returns the events of a bucket.
func (d *objectServer) handleTopic(w http.ResponseWriter, req *http.Request) {
	d.relay.QueueUnpublished(req.Context())
	all := []topicEvent{}
	for from := (domain.Position{}); ; {
		found, err := d.streams.Read(req.Context(), domain.ObjectsStream(), from, 1000)
		if err != nil {
			writeError(w, err)
			return
		}
		if len(found.Entries) == 0 {
			_ = json.NewEncoder(w).Encode(all) // an error means that the client has disconnected
			return
		}
		for i := range found.Entries {
			var e topicEvent
			if err := json.Unmarshal(found.Entries[i].Payload, &e); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			if e.Bucket == req.PathValue("bucket") {
				all = append(all, e)
			}
			from = found.Entries[i].Position.Next()
		}
	}
}

// A topicClient sends the events of buckets, one bucket after the other, and checks that the topic has each change of
// their objects once.
type topicClient struct {
	w      *crashRun
	number int
}

func (c *topicClient) relayUntil(ctx context.Context, stop <-chan struct{}) error {
	for n := 0; ctx.Err() == nil; n++ {
		select {
		case <-stop:
			return nil
		default:
		}
		if err := c.relayBucket(ctx, fmt.Sprintf("relayed-%d-%d", c.number, n)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// relayBucket creates, updates and deletes the objects of a bucket, and creates them again.
func (c *topicClient) relayBucket(ctx context.Context, bucket string) error {
	var want []domain.ObjectStateEvent
	for round := 1; round <= relayedRounds; round++ {
		kind, event := "C", domain.StateUpdated
		switch round % 3 {
		case 0:
			kind, event = "D", domain.StateDeleted
		case 1:
			event = domain.StateCreated
		}
		want = append(want, event)
		var message []objectEvent
		for key := range relayedKeys {
			message = append(message, objectEvent{fmt.Sprint("key-", key), fmt.Sprintf("%s@%04X", kind, 16*round)})
		}
		if err := c.w.sendEvents(ctx, "/"+bucket, message, func() {}); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.w.patience)
	defer cancel()
	for {
		found, err := c.eventsOf(ctx, bucket)
		if err != nil {
			return err
		}
		if len(found) >= relayedKeys*relayedRounds {
			return compareEvents(bucket, found, want)
		}
		if err := clock.Sleep(ctx, 20*time.Millisecond); err != nil { // time for the relay to publish the remaining changes
			return errors.Join(fmt.Errorf("the topic has %d events of %s", len(found), bucket), err)
		}
	}
}

func (c *topicClient) eventsOf(ctx context.Context, bucket string) (found []topicEvent, err error) {
	err = c.w.load.retryUntilDone(ctx, func() error {
		a, err := c.w.load.sendRequest(ctx, http.MethodGet, "/"+bucket+"/topic", "", nil)
		if err == nil {
			found = nil
			err = json.Unmarshal(a.body, &found)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the topic: %w", err)
	}
	return found, nil
}

// compareEvents returns an error unless the events of each object of a bucket, in the order of their versions, are
// those of want.
func compareEvents(bucket string, found []topicEvent, want []domain.ObjectStateEvent) error {
	slices.SortFunc(found, func(a, b topicEvent) int { return cmp.Compare(a.Version, b.Version) })
	of := make(map[string][]domain.ObjectStateEvent)
	for _, e := range found {
		of[e.Key] = append(of[e.Key], e.Event)
	}
	for key := range relayedKeys {
		if got := of[fmt.Sprint("key-", key)]; !slices.Equal(got, want) {
			return fmt.Errorf("object key-%d of %s has the events %v in the topic, want %v", key, bucket, got, want)
		}
	}
	return nil
}
