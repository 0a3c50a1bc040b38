// Package publish has the use case of senders: their messages are appended to the stream of a
// topic, and the receivers that subscribe to it are called.
package publish

import (
	"context"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// maxBytes is the limit for the stored bytes of the payloads of one append. Larger appends
// would delay others for too long.
const maxBytes = 256 << 10

// A Service publishes messages. It is safe for concurrent use.
type Service struct {
	streams  repository.Streams
	appended func(domain.StreamName, []domain.Message, []repository.Appended)
}

// New returns a Service. It calls appended after each append.
func New(streams repository.Streams, appended func(domain.StreamName, []domain.Message, []repository.Appended)) *Service {
	return &Service{streams, appended}
}

// A Result has the outcomes of the messages of a call.
type Result struct {
	Accepted   int
	Duplicates int   // messages that were sent before with the same content
	Conflicts  []int // indexes of messages that were sent before with other content
	Awaited    []Awaited
}

// Awaited is a message for which its sender may wait, because its stream lists sync cursors. It
// was appended by this call or before.
type Awaited struct {
	Index int // index of the message
	repository.Appended
}

// Publish appends messages in the given order. The caller has checked them by Check. If it fails,
// the Result counts the messages that were certainly appended; others may have been appended,
// too. The call may then be repeated: messages with an ID that are appended are duplicates. It
// fails with Invalid if only the hub publishes to the topic.
func (s *Service) Publish(ctx context.Context, stream domain.StreamName, messages []domain.Message) (Result, error) {
	var r Result
	if topic, _ := stream.Topic(); domain.IsReservedTopic(topic) {
		return r, domain.Errorf(domain.Invalid, "topic: want one other than %s, to which the hub publishes", topic)
	}
	for begin := 0; begin < len(messages); {
		n := countAppendable(messages[begin:])
		part := messages[begin : begin+n]
		appended, err := s.streams.Append(ctx, stream, part)
		if err != nil {
			return r, err
		}
		for i, a := range appended {
			switch a.Outcome {
			case repository.AppendGap: // only messages with a version can leave a gap
			case repository.AppendedNow:
				r.Accepted++
			case repository.AppendDuplicate:
				r.Duplicates++
			case repository.AppendConflict:
				r.Conflicts = append(r.Conflicts, begin+i)
			}
			if len(a.Sync) > 0 && a.Outcome != repository.AppendConflict {
				r.Awaited = append(r.Awaited, Awaited{begin + i, a})
			}
		}
		s.appended(stream, part, appended)
		begin += n
	}
	return r, nil
}

// countAppendable returns how many messages fit into one append: at least one, and not two with
// the same ID, so that the next append detects the second one as a duplicate or conflict.
func countAppendable(messages []domain.Message) int {
	bytes, ids := 0, make(map[string]bool)
	for i := range messages {
		m := &messages[i]
		bytes += m.InlineBytes()
		if i > 0 && (i == repository.MaxAppend || bytes > maxBytes || m.ID != "" && ids[m.ID]) {
			return i
		}
		ids[m.ID] = true
	}
	return len(messages)
}
