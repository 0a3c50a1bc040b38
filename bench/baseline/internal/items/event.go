package items

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Check validates the events of a Save as the repository port requires.
func Check(to domain.ActorID, groups domain.Groups, events []domain.Event) error {
	for i := range events {
		_, err := groups.GroupOf(events[i].Origin)
		if invalid := events[i].Check(); invalid != nil {
			err = invalid
		}
		if err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		if events[i].Recipient != to {
			return domain.Errorf(domain.Invalid, "event %d: it is for %q, want %q", i, events[i].Recipient, to)
		}
	}
	return nil
}

// PutPayloads stores the payloads of events in one object, and returns their
// positions. Without payloads it does nothing.
func PutPayloads(ctx context.Context, content repository.Content, events []domain.Event) ([]repository.Section, error) {
	at := make([]repository.Section, len(events))
	object := "payloads/" + rand.Text()
	var data []byte
	for i := range events {
		if payload := events[i].Payload; payload != nil {
			at[i] = repository.Section{Object: object, Offset: int64(len(data)), Length: int64(len(payload)), Sum: repository.SumOf(payload)}
			data = append(data, payload...)
		}
	}
	if data == nil {
		return at, nil
	}
	if content == nil {
		return nil, domain.Errorf(domain.Invalid, "payload: this store was given no content store to keep it in")
	}
	return at, content.Put(ctx, object, bytes.NewReader(data))
}

// Words are the stored texts of an event's ids and names. Event parses them.
type Words struct {
	ID, Recipient, Origin, ContentType, DocumentType string
}

// Event returns the event with these fields.
func (w Words) Event() (domain.Event, error) {
	id, err1 := domain.ParseEventID(w.ID)
	recipient, err2 := domain.ParseActorID(w.Recipient)
	origin, err3 := domain.ParseOrigin(w.Origin)
	contentType, err4 := domain.ParseContentType(w.ContentType)
	documentType, err5 := domain.ParseDocumentType(w.DocumentType)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return domain.Event{}, domain.Errorf(domain.Damaged, "stored event %s: %w", w.ID, err)
	}
	return domain.Event{ID: id, Recipient: recipient, Origin: origin, ContentType: contentType, DocumentType: documentType}, nil
}
