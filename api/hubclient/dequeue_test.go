package hubclient_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/hubclient"
)

func (h *faultyHub) peek() *hubclient.Bundle {
	h.t.Helper()
	b, err := h.client.Peek(h.t.Context(), actor, hubclient.PeekOptions{})
	require.NoError(h.t, err)
	h.t.Cleanup(func() { _ = b.Close() })
	return b
}

func TestDequeue_ReturnsNilForNotFoundOnlyAfterALostResponse(t *testing.T) {
	for name, tc := range map[string]struct {
		steps    []hubStep
		succeeds bool
	}{
		"answer":                          {[]hubStep{ok}, true},
		"not open":                        {[]hubStep{problem(404)}, false},
		"gone":                            {[]hubStep{problem(410)}, false},
		"not open after a lost answer":    {[]hubStep{dropConnection, problem(404)}, true},
		"gone after a lost answer":        {[]hubStep{dropConnection, problem(410)}, true},
		"not open after an unsure answer": {[]hubStep{problem(503), problem(404)}, true},
		"not open after a refusal":        {[]hubStep{problem(429), problem(404)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFaultyHub(t, append([]hubStep{bundle("b", body, len(body))}, tc.steps...)...)
			err := h.peek().Dequeue(t.Context())
			if tc.succeeds {
				require.NoError(t, err)
				return
			}
			e, ok := errors.AsType[*hubclient.NotOpenError](err)
			require.True(t, ok)
			require.False(t, e.MayBeDequeued)
		})
	}
}

func TestDequeue_OfAnIDAlwaysReportsNotFound(t *testing.T) {
	h := newFaultyHub(t, dropConnection, problem(404))
	e, ok := errors.AsType[*hubclient.NotOpenError](h.client.Dequeue(t.Context(), actor, "b"))
	require.True(t, ok, "nothing says that the bundle was ever open")
	require.True(t, e.MayBeDequeued)
}
