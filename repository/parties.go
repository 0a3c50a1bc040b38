package repository

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Parties stores the parties of the broker: producers, channels, and the consumers of channels. Parties
// are never removed. Any node may call any method at any time.
type Parties interface {
	// PutParty replaces the party that has p.ID and p.Version with p; if p.Version is empty, it stores p
	// as a new party. It returns the new version. It fails with Conflict if the party has another
	// version, or if it exists and p.Version is empty. It fails with NotFound if p.Version is not empty
	// and the party does not exist. After an Uncertain failure, the party may have been stored.
	PutParty(ctx context.Context, p *Party) (PartyVersion, error)

	// Party returns a party. It fails with NotFound if the party does not exist.
	Party(ctx context.Context, id domain.PartyID) (*Party, error)

	// Parties returns up to limit parties of a list, in the byte order of their names, starting at the
	// name first.
	Parties(ctx context.Context, list domain.PartyList, first string, limit int) ([]*Party, error)
}

// A Party is a stored party.
type Party struct {
	ID    domain.PartyID
	Label string // name for display

	// TokenSum is the SHA-256 of the token of a producer or of a channel. The hub only compares the
	// token, so it does not store the token.
	TokenSum [sha256.Size]byte
	// Token is the encrypted token of a consumer. The hub stores it because calls to the consumer contain it.
	Token string

	CallbackURL string    // callback URL of a consumer
	Start       StreamEnd // position from which a consumer receives the messages of its channel

	Created time.Time
	Changed time.Time // time of the last change; at least a second after the previous Changed, because HTTP dates have whole seconds
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
