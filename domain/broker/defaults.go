package broker

import (
	"cmp"
	"context"
	"crypto/rand"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// defaultCacheTime lets every node reject a replaced token within five seconds: up to four in the cache, plus one for
// the request that uses the cached party.
const defaultCacheTime = 4 * time.Second

// defaultFetchTimeout is the time in which a node takes over the cursors of a dead node.
const defaultFetchTimeout = 10 * time.Second

func (o *Options) setDefaults() {
	if o.CheckURL == nil {
		o.CheckURL = func(context.Context, string) error { return nil }
	}
	if o.CheckHeaders == nil {
		o.CheckHeaders = func(map[string]string) error { return nil }
	}
	if o.Created == nil {
		o.Created = func(domain.CursorID, domain.StreamName) {}
	}
	if o.Changed == nil {
		o.Changed = func(domain.CursorID) {}
	}
	if o.Published == nil {
		o.Published = func(domain.StreamName, []domain.Message, []repository.Appended) {}
	}
	if o.CheckStream == nil {
		o.CheckStream = func(domain.StreamName) {}
	}
	if o.IsCalling == nil {
		o.IsCalling = func(domain.CursorID, domain.EntryID) bool { return false }
	}
	if o.Orphaned == nil {
		o.Orphaned = func() []int { return nil }
	}
	if o.Settled == nil {
		o.Settled = func(domain.CursorID) <-chan struct{} { return nil }
	}
	if o.After == nil {
		o.After = time.After
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.NewID == nil {
		o.NewID = rand.Text
	}
	o.CacheTime = cmp.Or(o.CacheTime, defaultCacheTime)
	o.FetchTimeout = cmp.Or(o.FetchTimeout, defaultFetchTimeout)
}
