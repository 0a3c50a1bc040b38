// Package publish appends the messages of senders to the stream of a topic. It then notifies the
// delivery engine, which calls the receivers that subscribe to the topic.
package publish

import (
	"context"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// maxBytes is the maximum number of stored payload bytes in one append. A larger append would delay
// other appends to the stream too much.
const maxBytes = 256 << 10

// A Service publishes messages. It is safe for concurrent use.
type Service struct {
	streams  repository.Streams
	appended func(domain.StreamName, []domain.Message, []repository.Appended)
}

// New returns a Service that calls appended after each append.
func New(streams repository.Streams, appended func(domain.StreamName, []domain.Message, []repository.Appended)) *Service {
	return &Service{streams, appended}
}

// A Result counts the messages in a call by their outcomes.
type Result struct {
	Accepted   int
	Duplicates int   // number of messages that were sent before with the same content
	Conflicts  []int // indexes of messages whose ids were sent before with different content
	Awaited    []AwaitedMessage
}

// An AwaitedMessage is a message to a stream with sync subscriptions, so its sender can wait for
// the deliveries. It was appended by this call or an earlier one.
type AwaitedMessage struct {
	Index int // index of the message in the call to Publish
	repository.Appended
}

// Publish appends messages in the given order. The caller must have checked them with Check. If
// Publish fails, the Result counts the messages that were certainly appended, and further messages
// may have been appended. The call may be repeated: messages that have an ID and were appended
// before are then duplicates. Publish fails with Invalid if only the hub may publish to the topic.
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
			case repository.AppendGap: // a message causes a gap only if it has a version
			case repository.AppendedNow:
				r.Accepted++
			case repository.AppendDuplicate:
				r.Duplicates++
			case repository.AppendConflict:
				r.Conflicts = append(r.Conflicts, begin+i)
			}
			if len(a.Sync) > 0 && a.Outcome != repository.AppendConflict {
				r.Awaited = append(r.Awaited, AwaitedMessage{begin + i, a})
			}
		}
		s.appended(stream, part, appended)
		begin += n
	}
	return r, nil
}

// countAppendable returns the number of messages to append next, which is at least one. An append
// contains each ID once. A later message with the same ID belongs to a further append, which
// detects it as a duplicate or conflict.
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
