package push

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A node appends messages of two priorities. Its first attempt is refused, because another node has appended to one of
// them. Its second attempt succeeds, but the reply is lost. In the other priority, both attempts chose the same position.
func TestAppend_ReturnsThePositionsOfTheAttemptThatSucceeded(t *testing.T) {
	for _, size := range []int{10, 1500} { // entries of 1,500 bytes soon leave the head for a page
		for _, options := range []Options{{}, {SegmentBytes: 100}} {
			r := newRig(t, embedded.Options{})
			stream := repositorytest.NewStream()
			node, other := r.node(options), r.node(options)
			messages := func(priorities ...int) (messages []domain.Message) {
				for i, m := range repositorytest.Messages(len(priorities)) {
					m.ID, m.Priority, m.Payload = "", priorities[i], append(m.Payload, bytes.Repeat([]byte(" "), size)...)
					messages = append(messages, m)
				}
				return messages
			}
			appendMessages := func(s *Store, sent []domain.Message) []domain.Position {
				t.Helper()
				var positions []domain.Position
				appended, err := s.Append(t.Context(), stream, sent)
				require.NoError(t, err)
				for _, a := range appended {
					positions = append(positions, a.Position)
				}
				return positions
			}
			appendMessages(node, messages(4, 0)) // the node caches the head
			appendMessages(other, messages(0, 0, 0))

			writes := 0
			r.line.Break(func(_ int, req *http.Request) faulty.Fault {
				if req.Method != http.MethodGet {
					writes++
				}
				if req.Method != http.MethodGet && writes == 2 {
					return faulty.FailedAfter
				}
				return faulty.None
			})
			sent := messages(4, 0, 0)
			for i, at := range appendMessages(node, sent) {
				entries, err := other.Read(t.Context(), stream, at, 1)
				require.NoError(t, err)
				require.Len(t, entries.Entries, 1)
				require.Equal(t, sent[i].Payload, entries.Entries[0].Payload, "size %d, segments of %d bytes, entry %s", size, options.SegmentBytes, at)
			}
			require.GreaterOrEqual(t, writes, 2)
		}
	}
}
