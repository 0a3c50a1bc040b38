package cosmos

import (
	"time"

	"github.com/messagehub/messagehub/cosmos/client"
)

// A recordDoc is the document that records an operator's order.
type recordDoc struct {
	ID        string    `json:"id"`
	Recipient string    `json:"recipient"`
	Kind      string    `json:"kind"` // always "record"
	What      string    `json:"what"`
	Who       string    `json:"who"`
	Why       string    `json:"why"`
	When      time.Time `json:"when"`
	Group     string    `json:"group,omitempty"`
	Bundle    string    `json:"bundle,omitempty"`
	Events    int       `json:"events,omitempty"`
	Lost      *lossDoc  `json:"lost,omitempty"`
	TTL       int       `json:"ttl,omitempty"` // seconds from the write to the removal by Cosmos
	client.FormatNumber
}

const recordKind = "record"

// recordsKept is the time for which records are stored.
const recordsKept = 365 * 24 * time.Hour
