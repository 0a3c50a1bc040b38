package publish_test

import (
	"bytes"
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/publish"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// A countedStreams records the number of messages in each append.
type countedStreams struct {
	repository.Streams
	sizes []int
}

func (s *countedStreams) Append(ctx context.Context, stream domain.StreamName, messages []domain.Message) ([]repository.Appended, error) {
	s.sizes = append(s.sizes, len(messages))
	return s.Streams.Append(ctx, stream, messages)
}

func TestPublish_SplitsMessagesIntoAppends(t *testing.T) {
	stream, err := domain.ParseTopic("t")
	require.NoError(t, err)
	messages := func(n, size int) []domain.Message {
		all := make([]domain.Message, n)
		for i := range all {
			all[i] = domain.Message{ID: strconv.Itoa(i), Payload: bytes.Repeat([]byte{'x'}, size)}
		}
		return all
	}
	for _, tc := range []struct {
		name     string
		messages []domain.Message
		sizes    []int
		want     publish.Result
	}{
		{"none", nil, nil, publish.Result{}},
		{"by number", messages(130, 1), []int{60, 60, 10}, publish.Result{Accepted: 130}},
		{"by size", messages(4, 100<<10), []int{2, 2}, publish.Result{Accepted: 4}},
		{"a large one is alone", messages(2, domain.MaxPayload), []int{1, 1}, publish.Result{Accepted: 2}},
		{"one id twice", append(messages(2, 1), messages(2, 1)...), []int{2, 2}, publish.Result{Accepted: 2, Duplicates: 2}},
		{"one id with two contents", append(messages(2, 1), messages(1, 2)...), []int{2, 1}, publish.Result{Accepted: 2, Conflicts: []int{2}}},
		{"without ids", make([]domain.Message, 3), []int{3}, publish.Result{Accepted: 3}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			streams := &countedStreams{Streams: memory.NewStreams(time.Hour, time.Now)}
			told := 0
			s := publish.New(streams, func(_ domain.StreamName, _ []domain.Message, appended []repository.Appended) { told += len(appended) })
			got, err := s.Publish(t.Context(), stream, tc.messages)
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
			require.Equal(t, tc.sizes, streams.sizes)
			require.Equal(t, len(tc.messages), told)
		})
	}
}
