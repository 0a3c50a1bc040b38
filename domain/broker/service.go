package broker

import (
	"context"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Ports are the stores that a Service uses.
type Ports struct {
	Parties repository.Parties
	Streams repository.Streams
	Cursors repository.Cursors
	Shards  repository.Shards
	Content repository.Content // stores large payloads
}

// A Sealer encrypts the tokens of consumers. A secret that was sealed for one purpose cannot be
// opened for another purpose.
type Sealer interface {
	// SealFor seals a secret for a purpose.
	SealFor(purpose, secret string) string
	// OpenFor opens a secret that SealFor has sealed for the same purpose. It fails for any
	// other text.
	OpenFor(purpose, sealed string) (string, error)
}

// Options of a Service. The zero value is valid.
type Options struct {
	// CheckURL returns an Invalid error that begins with callbackUrl if a URL must not be
	// called. Default: any URL may be called.
	CheckURL func(ctx context.Context, url string) error
	// CheckHeaders returns an Invalid error that names a header which calls must not have.
	// Default: calls may have any header.
	CheckHeaders func(headers map[string]string) error
	// Created is called after the cursor of a consumer was created, Changed after a consumer or a
	// request to its cursor was stored, and Published after messages were appended. Default:
	// nothing is called.
	Created   func(domain.CursorID, domain.StreamName)
	Changed   func(domain.CursorID)
	Published func(domain.StreamName, []domain.Message, []repository.Appended)
	// CheckStream is called to make the nodes look for messages that the consumers of a channel
	// have not taken. Default: nothing is called.
	CheckStream func(domain.StreamName)
	// IsCalling reports whether this node is calling a consumer with the message of an entry.
	// Default: it never does.
	IsCalling func(domain.CursorID, domain.EntryID) bool
	// Orphaned returns the shards whose cursors no node serves, because their owner has died.
	// Default: no shard is orphaned.
	Orphaned func() []int
	// Settled returns a channel that is closed when this node has stored the next settlement of a
	// cursor. Default: it is never closed.
	Settled func(domain.CursorID) <-chan struct{}

	CacheTime    time.Duration                        // how long a party is cached; default 4 s
	FetchTimeout time.Duration                        // time within which the owner of a cursor has to carry out a Peek or Dequeue; default 10 s
	Clock        func() time.Time                     // default time.Now
	After        func(time.Duration) <-chan time.Time // default time.After
	NewID        func() string                        // makes the id of a request to a cursor; default: 26 random letters and digits
}

// A Service serves the producers, consumers and operators of the broker. It is safe for concurrent
// use.
type Service struct {
	ports Ports
	keys  Sealer
	opts  Options
	cache *partyCache
}

// New returns a Service that seals the tokens of consumers with keys. A Service without keys
// refuses consumers.
func New(ports Ports, keys Sealer, opts Options) *Service {
	opts.setDefaults()
	return &Service{ports: ports, keys: keys, opts: opts, cache: newPartyCache(opts.CacheTime, opts.Clock)}
}
