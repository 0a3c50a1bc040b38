package hub

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// DataStreams is a Streams that adds the streams of [domain.DataStream]. The added streams are not stored: their
// entries are computed from the watermarks of actors. Entry n announces the data up to sequence number n+1.
//
// Where a cursor has not taken an entry yet, Read returns only the newest entry, because its data includes that of all
// earlier ones. For a taken entry, Read returns exactly this entry, so that all attempts of its delivery are equal. The
// position of a taken entry has a special page: the number of the entry plus 1.
type DataStreams struct {
	repository.Streams
	events repository.DataAvailable
}

// NewDataStreams returns a Streams with the streams of streams, plus the data streams computed from events.
func NewDataStreams(streams repository.Streams, events repository.DataAvailable) *DataStreams {
	return &DataStreams{streams, events}
}

// Append implements [repository.Streams]. For a data stream, it fails with Invalid.
func (s *DataStreams) Append(ctx context.Context, stream domain.StreamName, messages []domain.Message) ([]repository.Appended, error) {
	if _, isData := stream.DataActor(); isData {
		return nil, domain.Errorf(domain.Invalid, "append to %s: want another stream; this one follows the events of the actor", stream)
	}
	return s.Streams.Append(ctx, stream, messages)
}

// Read implements [repository.Streams].
func (s *DataStreams) Read(ctx context.Context, stream domain.StreamName, from domain.Position, limit int) (repository.Entries, error) {
	actor, isData := stream.DataActor()
	if !isData {
		return s.Streams.Read(ctx, stream, from, limit)
	}
	found := repository.Entries{Start: from}
	if from.Priority != 0 || limit <= 0 {
		return found, nil
	}
	number := from.Number
	if wasTaken := from.Page == int(number)+1; !wasTaken {
		watermark, err := s.events.Watermark(ctx, actor)
		if err != nil {
			return found, err
		}
		if int64(watermark) <= number {
			return found, nil
		}
		number = int64(watermark) - 1
	}
	found.Entries = []repository.Entry{dataEntry(actor, number)}
	return found, nil
}

// End implements [repository.Streams].
func (s *DataStreams) End(ctx context.Context, stream domain.StreamName) (repository.StreamEnd, error) {
	actor, isData := stream.DataActor()
	if !isData {
		return s.Streams.End(ctx, stream)
	}
	watermark, err := s.events.Watermark(ctx, actor)
	if err != nil || watermark == 0 {
		return repository.StreamEnd{}, err
	}
	return repository.StreamEnd{Positions: []domain.Position{{EntryID: domain.EntryID{Number: int64(watermark)}}}}, nil
}

// CurrentEnd implements [repository.Streams]. Unlike there, the watermark of a data stream may be stale. A receiver that
// begins at a stale end is notified once of data that already existed.
func (s *DataStreams) CurrentEnd(ctx context.Context, stream domain.StreamName) (repository.StreamEnd, error) {
	if _, isData := stream.DataActor(); isData {
		return s.End(ctx, stream)
	}
	return s.Streams.CurrentEnd(ctx, stream)
}

// dataEntry returns the entry with the given number. The same parameters always give the same entry.
func dataEntry(actor domain.ActorID, number int64) repository.Entry {
	watermark := number + 1
	payload, err := json.Marshal(struct {
		Actor     string `json:"actor"`
		Watermark int64  `json:"watermark"`
	}{actor.String(), watermark})
	if err != nil {
		panic(err) // cannot fail for text and a number
	}
	return repository.Entry{
		Message: domain.Message{
			Attributes: map[string]string{
				"specversion": "1.0", "id": actor.String() + "/" + strconv.FormatInt(watermark, 10),
				"source": "/v1/queues", "type": "messagehub.data-available", "subject": actor.String(),
			},
			ContentType: "application/json", Payload: payload,
		},
		Position: domain.Position{EntryID: domain.EntryID{Number: number}, Page: int(watermark)},
	}
}
