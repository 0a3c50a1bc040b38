package repository

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Parties keeps the parties of the broker: producers, channels, and the consumers of channels. Parties
// are never removed. Any node may call any method at any time.
type Parties interface {
	// PutParty stores p instead of the party that has p.ID and p.Version; if p.Version is empty,
	// it stores p as a new party. It returns the new version. It fails with Conflict if the party
	// has another version, or exists although p.Version is empty, and with NotFound if p.Version
	// is not empty and there is no such party. After an Uncertain failure, the party may have been
	// stored.
	PutParty(ctx context.Context, p *Party) (PartyVersion, error)

	// Party returns a party. It fails with NotFound if the party does not exist.
	Party(ctx context.Context, id domain.PartyID) (*Party, error)

	// Parties returns up to limit parties of a list, in the byte order of their names, from the name
	// first on.
	Parties(ctx context.Context, list domain.PartyList, first string, limit int) ([]*Party, error)
}

// A Party is a stored party.
type Party struct {
	ID    domain.PartyID
	Label string // text for people

	// TokenSum is the SHA-256 of the token of a producer or of a channel: the hub only compares it.
	TokenSum [sha256.Size]byte
	// Token is the token of a consumer, sealed: the hub sends it.
	Token string

	CallbackURL string    // callback URL of a consumer
	Start       StreamEnd // of a consumer: it receives the messages of its channel from there on

	Created time.Time
	Changed time.Time // at least a whole second later than before, so that an HTTP date distinguishes changes
	Version PartyVersion
}

// Clone returns a copy that shares nothing with p.
func (p *Party) Clone() *Party {
	c := *p
	c.Start.Positions = slices.Clone(p.Start.Positions)
	return &c
}

// A PartyVersion identifies a state of a party for its store.
type PartyVersion string
