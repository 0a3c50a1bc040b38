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
	Content repository.Content // Content stores large payloads
}

// A Sealer encrypts the tokens of consumers. A token can be decrypted only for the purpose for which it was encrypted.
type Sealer interface {
	// SealFor encrypts a secret for a purpose.
	SealFor(purpose, secret string) string
	// OpenFor decrypts a secret that SealFor has encrypted for the same purpose. It fails for any other text.
	OpenFor(purpose, sealed string) (string, error)
}

// Options configure a Service. The zero value is valid.
type Options struct {
	// CheckURL returns an Invalid error if a URL must not be called. The error begins with callbackUrl. By default, any
	// URL may be called.
	CheckURL func(ctx context.Context, url string) error
	// CheckHeaders returns an Invalid error if calls must not have one of the headers. By default, all headers are
	// allowed.
	CheckHeaders func(headers map[string]string) error
	// Created is called after a consumer's cursor was created, Changed after a consumer or a request for its cursor was
	// stored, and Published after messages were appended. Each may be nil.
	Created   func(domain.CursorID, domain.StreamName)
	Changed   func(domain.CursorID)
	Published func(domain.StreamName, []domain.Message, []repository.Appended)
	// CheckStream is called to make nodes look for messages that a channel's consumers have not taken. It may be nil.
	CheckStream func(domain.StreamName)
	// IsCalling reports whether this node is calling a consumer with a message. By default, it never is.
	IsCalling func(domain.CursorID, domain.EntryID) bool
	// Orphaned returns the shards that no node serves, because their owner has died. By default, none exist.
	Orphaned func() []int
	// Settled returns a channel that is closed when this node next stores a settlement of a cursor. By default, it is
	// never closed.
	Settled func(domain.CursorID) <-chan struct{}

	CacheTime    time.Duration                        // maximum age of a cached party; default 4 s
	FetchTimeout time.Duration                        // how long the owner of a cursor may take to execute a Peek or Dequeue; default 10 s
	Clock        func() time.Time                     // default time.Now
	After        func(time.Duration) <-chan time.Time // default time.After
	NewID        func() string                        // returns the id for a request to a cursor; default: 26 random letters and digits
}

// A Service implements the broker for producers, consumers and operators. It is safe for concurrent use.
type Service struct {
	ports Ports
	keys  Sealer
	opts  Options
	cache *partyCache
}

// New returns a Service. It encrypts the tokens of consumers with keys; if keys is nil, it refuses consumers.
func New(ports Ports, keys Sealer, opts Options) *Service {
	opts.setDefaults()
	return &Service{ports: ports, keys: keys, opts: opts, cache: newPartyCache(opts.CacheTime, opts.Clock)}
}
