package embedded_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository/content/embedded"
)

// An eventLog records the events of an account.
type eventLog struct {
	mu     sync.Mutex
	events []embedded.BlobEvent
}

func (l *eventLog) recordEvent(e embedded.BlobEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// accountOptions returns account options with which l records the events.
func (l *eventLog) accountOptions(dir string, clock func() time.Time) embedded.Options {
	return embedded.Options{Dir: dir, Containers: []string{"c-c"}, Changed: l.recordEvent, Clock: clock}
}

func TestChanged_ReportsWritesAndDeletionsOnly(t *testing.T) {
	for name, dir := range map[string]string{"in memory": "", "in a folder": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			log, at := &eventLog{}, time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC)
			a := openAccount(t, log.accountOptions(dir, func() time.Time { return at }))
			c := newClient(t, a, "c-c")
			require.Empty(t, log.events, "no blob has changed")
			kind := "text/plain"
			first, err := c.NewBlockBlobClient("a/b").Upload(t.Context(), bodyOf("0123456789"), &blockblob.UploadOptions{HTTPHeaders: &blob.HTTPHeaders{BlobContentType: &kind}})
			require.NoError(t, err)
			never := azcore.ETagAny
			_, err = c.NewBlockBlobClient("a/b").Upload(t.Context(), bodyOf("x"), &blockblob.UploadOptions{
				AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &never}},
			})
			requireRefused(t, err, 409, bloberror.BlobAlreadyExists)
			second := putBlob(t, c, "a/b", "abc")
			require.Equal(t, "abc", getBlob(t, c, "a/b"))
			_, err = c.NewBlobClient("a/b").Delete(t.Context(), nil)
			require.NoError(t, err)
			_, err = c.NewBlobClient("a/b").Delete(t.Context(), nil)
			requireRefused(t, err, 404, bloberror.BlobNotFound)

			require.Len(t, log.events, 3)
			for i, want := range []embedded.BlobEvent{
				{Type: embedded.BlobCreated, ETag: string(*first.ETag), ContentType: "text/plain", Size: 10},
				{Type: embedded.BlobCreated, ETag: string(second), ContentType: "application/octet-stream", Size: 3},
				{Type: embedded.BlobDeleted, ETag: string(second), ContentType: "application/octet-stream"},
			} {
				want.Container, want.Blob, want.Time, want.Sequencer = "c-c", "a/b", at, log.events[i].Sequencer
				require.Equal(t, want, log.events[i])
				require.Regexp(t, `^[0-9A-F]{48}$`, want.Sequencer)
			}
		})
	}
}

func TestSequencers_AscendAfterARestartWithAnEarlierClock(t *testing.T) {
	log, at, dir := &eventLog{}, time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC), t.TempDir()
	for range 3 {
		a, err := embedded.Open(log.accountOptions(dir, func() time.Time {
			at = at.Add(10 * time.Nanosecond)
			return at
		}))
		require.NoError(t, err)
		putBlob(t, newClient(t, a, "c-c"), "a", "1")
		putBlob(t, newClient(t, a, "c-c"), "a", "2")
		require.NoError(t, a.Close())
		at = at.Add(-15 * time.Nanosecond)
	}
	sequencers := make([]string, len(log.events))
	for i, e := range log.events {
		sequencers[i] = e.Sequencer
	}
	require.Len(t, slices.Compact(slices.Clone(sequencers)), 6)
	require.True(t, slices.IsSorted(sequencers), "%v", sequencers)
}

func TestChanged_ReportsTheEventsOfABlobInOrder(t *testing.T) {
	log := &eventLog{}
	a := openAccount(t, log.accountOptions("", nil))
	c := newClient(t, a, "c-c")
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			for n := range 20 {
				name := fmt.Sprint(n % 3)
				if _, err := c.NewBlockBlobClient(name).Upload(t.Context(), bodyOf("x"), nil); err != nil {
					t.Error(err)
				}
				if i%2 == 0 {
					_, _ = c.NewBlobClient(name).Delete(t.Context(), nil) // a concurrent writer may have deleted the blob
				}
			}
		})
	}
	writers.Wait()
	last := make(map[string]string)
	for _, e := range log.events {
		require.Greater(t, e.Sequencer, last[e.Blob])
		last[e.Blob] = e.Sequencer
	}
	require.GreaterOrEqual(t, len(log.events), 160)
}
