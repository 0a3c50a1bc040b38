package push

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// The kinds of documents of subscriptions. Each document stores the name of its kind in the member
// "kind".
var (
	definitionDocument = client.DocumentKind{Name: "definition", Format: 1}
	ownerDocument      = client.DocumentKind{Name: "owner", Format: 1}
)

const (
	definitionID = "definition"
	ownerID      = "owner"
)

// The states of a definition. The state of an existing subscription is the empty string.
const (
	definitionDeleted = "deleted" // the subscription was deleted; the state stays until the document expires
	definitionRefused = "refused" // only reservations of this id were refused, so the id may be reserved again
)

// A definitionDoc is the stored form of a repository.Definition. It exists for some time after the
// deletion of the subscription, and records which reservations of the id were refused.
type definitionDoc struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"` // partition key of the documents of the cursor
	Kind         string `json:"kind"`
	WriteID      string `json:"writeId"`
	CreatedBy    string `json:"createdBy,omitempty"` // id of the write that created the subscription

	State   string   `json:"state,omitempty"`
	Refused []string `json:"refused,omitempty"` // owner and number of each refused reservation of this id

	Owner            string            `json:"owner,omitempty"`
	Topic            string            `json:"topic,omitempty"`
	CallbackURL      string            `json:"callbackUrl,omitempty"`
	Method           string            `json:"method,omitempty"`
	Encoding         string            `json:"encoding,omitempty"`
	FormFields       map[string]string `json:"formFields,omitempty"`
	PayloadFormField string            `json:"payloadFormField,omitempty"`
	HMACKeyID        string            `json:"hmacKeyId,omitempty"`
	Filter           string            `json:"filter,omitempty"`
	Attachments      map[string]string `json:"attachmentExpressions,omitempty"`
	Secret           string            `json:"secret,omitempty"`         // encrypted
	Previous         string            `json:"previousSecret,omitempty"` // encrypted
	PreviousUntil    int64             `json:"previousUntil,omitempty"`  // microseconds
	Headers          string            `json:"headers,omitempty"`        // encrypted
	HeaderNames      []string          `json:"headerNames,omitempty"`
	RotatedFrom      string            `json:"rotatedFrom,omitempty"` // version
	RotatedAt        int64             `json:"rotatedAt,omitempty"`   // microseconds
	IsSync           bool              `json:"sync,omitempty"`
	MaxRate          float64           `json:"maxRate,omitempty"` // limit for calls per second
	MaxConcurrency   int               `json:"maxConcurrency,omitempty"`
	IsOrdered        bool              `json:"ordered,omitempty"`
	Paused           bool              `json:"paused,omitempty"`
	Resumed          int               `json:"resumed,omitempty"`
	Created          int64             `json:"created,omitempty"` // microseconds
	TTL              int64             `json:"ttl,omitempty"`     // time to live in seconds; set when the cursor is retired
	watchedMark
	client.Document

	etag azcore.ETag
}

func (*definitionDoc) DocumentKind() client.DocumentKind { return definitionDocument }

// isLive reports whether d is the definition of a subscription that was not deleted.
func (d *definitionDoc) isLive() bool { return d.State == "" }

// set copies the members that the owner of the subscription may choose.
func (d *definitionDoc) set(from *repository.Definition, writeID string) {
	d.ID, d.PartitionKey, d.Kind, d.WriteID = definitionID, from.ID.Cursor().String(), definitionDocument.Name, writeID
	d.Owner, d.Topic, d.CallbackURL, d.Method, d.Encoding = from.Owner.String(), from.Topic, from.CallbackURL, from.Method, from.Encoding
	d.FormFields, d.PayloadFormField, d.HMACKeyID = from.FormFields, from.PayloadFormField, from.HMACKeyID
	d.Filter, d.Attachments, d.Paused, d.Resumed = from.Filter, from.Attachments, from.Paused, from.Resumed
	d.IsSync, d.MaxRate, d.MaxConcurrency, d.IsOrdered = from.IsSync, from.MaxRate, from.MaxConcurrency, from.IsOrdered
	d.Secret, d.Previous, d.PreviousUntil = from.Secret, from.Previous, toMicros(from.PreviousUntil)
	d.Headers, d.HeaderNames = from.Headers, from.HeaderNames
	d.RotatedFrom, d.RotatedAt = string(from.Rotation.From), toMicros(from.Rotation.At)
}

func (d *definitionDoc) toDefinition() (*repository.Definition, error) {
	var p documentParser
	found := &repository.Definition{
		ID: parse(&p, strings.TrimPrefix(d.PartitionKey, "s|"), domain.ParseSubscriptionID),
		Subscription: domain.Subscription{
			Owner: parse(&p, d.Owner, domain.ParseActorID), Topic: d.Topic, CallbackURL: d.CallbackURL, Method: d.Method,
			Encoding: d.Encoding, FormFields: d.FormFields, PayloadFormField: d.PayloadFormField, HMACKeyID: d.HMACKeyID,
			Filter: d.Filter, Attachments: d.Attachments, IsSync: d.IsSync, MaxRate: d.MaxRate, MaxConcurrency: d.MaxConcurrency,
			IsOrdered: d.IsOrdered,
		},
		Headers: d.Headers, HeaderNames: d.HeaderNames,
		Rotation: repository.Rotation{From: repository.DefinitionVersion(d.RotatedFrom), At: fromMicros(d.RotatedAt)},
		Secret:   d.Secret, Previous: d.Previous, PreviousUntil: fromMicros(d.PreviousUntil),
		Paused: d.Paused, Resumed: d.Resumed, Created: fromMicros(d.Created), Version: repository.DefinitionVersion(d.etag),
	}
	if p.err != nil {
		return nil, domain.Errorf(domain.Damaged, "definition of %s: %w", d.PartitionKey, p.err)
	}
	return found, nil
}

// An ownerDoc lists the subscriptions of an owner. Each write is conditional on the etag, so the number
// of reservations is exact.
type ownerDoc struct {
	ID           string   `json:"id"`
	PartitionKey string   `json:"partitionKey"`
	Kind         string   `json:"kind"`
	Next         int64    `json:"next"`               // number of the next reservation
	Reserved     []string `json:"reserved,omitempty"` // ids of subscriptions, each with the number of its reservation
	client.Document

	etag         azcore.ETag
	reservations []reservation // Reserved, parsed
}

func (*ownerDoc) DocumentKind() client.DocumentKind { return ownerDocument }

// Validate parses the reservations of an owner document that was read.
func (d *ownerDoc) Validate() (err error) {
	d.reservations = make([]reservation, len(d.Reserved))
	for i, text := range d.Reserved {
		if d.reservations[i], err = parseReservation(text); err != nil {
			return err
		}
	}
	return nil
}

func ownerKey(owner domain.ActorID) string { return "owner|" + owner.String() }

// A reservation entitles an owner to create a subscription. Its number is unique among all past and
// present reservations of the owner.
type reservation struct {
	id     domain.SubscriptionID
	number int64
}

func (r reservation) String() string { return fmt.Sprintf("%s %d", r.id, r.number) }

// refusalText returns the text that a definition stores for a refused reservation.
func (r reservation) refusalText(owner domain.ActorID) string {
	return fmt.Sprintf("%s %d", owner, r.number)
}

func parseReservation(text string) (reservation, error) {
	name, number, _ := strings.Cut(text, " ")
	id, err := domain.ParseSubscriptionID(name)
	if err != nil {
		return reservation{}, fmt.Errorf("reservation: %w", err)
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return reservation{}, fmt.Errorf("reservation: %w", err)
	}
	return reservation{id, n}, nil
}
