package hub_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// TestTraffic_LosesDuplicatesAndReordersNothing tests the rules H1 to H3 through a hub.
func TestTraffic_LosesDuplicatesAndReordersNothing(t *testing.T) {
	const senders, requests, fetchers = 3, 30, 3
	w := newWorld(t, hub.Options{})
	sent := make([][]domain.Event, senders)
	var delivered []manifestLine
	var mu sync.Mutex
	var sending, fetching sync.WaitGroup
	for sender := range senders {
		sending.Go(func() {
			for request := range requests {
				events := rt.Events(1+request%4, w.actor, rt.WithOrigin(rt.AllOrigins[request%len(rt.AllOrigins)]), rt.WithDocumentType(fmt.Sprint("sender ", sender)))
				if request%7 == 0 {
					events[0].SupportsBundling = false
				}
				sent[sender] = append(sent[sender], events...)
				for range 2 { // send every request twice, as after a lost reply
					_, err := w.hub.Ingest(w.ctx, events)
					assert.NoError(t, err)
				}
			}
		})
	}
	done := make(chan struct{})
	for range fetchers {
		fetching.Go(func() {
			for last := false; !last; {
				select {
				case <-done:
					last = true // fetch once more after the last Save has returned
				default:
				}
				lines, err := fetchAll(w)
				assert.NoError(t, err)
				mu.Lock()
				delivered = append(delivered, lines...)
				mu.Unlock()
			}
		})
	}
	sending.Wait()
	close(done)
	fetching.Wait()
	w.requireNoData()

	slices.SortFunc(delivered, func(a, b manifestLine) int { return int(a.Sequence - b.Sequence) })
	for sender := range senders {
		var got []string
		for i, e := range delivered {
			require.Equal(t, int64(i+1), e.Sequence, "each number once")
			if e.DocumentType == fmt.Sprint("sender ", sender) {
				got = append(got, e.ID)
			}
		}
		require.Equal(t, idsOf(sent[sender]), got)
	}
}

// fetchAll peeks and dequeues until no events wait. It returns the events of the bundles that it has dequeued itself.
func fetchAll(w *world) ([]manifestLine, error) {
	var all []manifestLine
	for {
		peeked, err := w.hub.Peek(w.ctx, w.newRequest())
		switch {
		case errors.Is(err, domain.ErrNoData):
			return all, nil
		case domain.KindOf(err) == domain.Busy:
			continue
		case err != nil:
			return all, err
		}
		var body bytes.Buffer
		if err := writeBody(w.ctx, peeked, &body); err != nil {
			return all, err
		}
		var lines []manifestLine
		if err := json.Unmarshal(body.Bytes(), &lines); err != nil {
			return all, err
		}
		switch _, err := w.hub.Dequeue(w.ctx, w.actor, peeked.ID); {
		case err == nil:
			all = append(all, lines...)
		case domain.KindOf(err) != domain.NotFound: // NotFound means that a concurrent fetcher has dequeued the bundle
			return all, err
		}
	}
}
