package client

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

func reply(status int, substatus string) error {
	return &azcore.ResponseError{StatusCode: status, RawResponse: &http.Response{
		StatusCode: status, Header: http.Header{"X-Ms-Substatus": {substatus}}, Body: io.NopCloser(strings.NewReader("")),
	}}
}

func TestFailure_DecidesKindAndRetryByStatus(t *testing.T) {
	for _, tc := range []struct {
		name        string
		err         error
		kind        domain.Kind
		again       bool
		mayBeStored bool
		full        bool
	}{
		{"no reply", errors.New("connection reset"), domain.Unavailable, true, true, false},
		{"timeout", reply(408, ""), domain.Unavailable, true, true, false},
		{"unavailable", reply(503, ""), domain.Unavailable, true, true, false},
		{"internal", reply(500, ""), domain.Unavailable, true, true, false},
		{"gone", reply(410, ""), domain.Unavailable, true, false, false},
		{"throttled", reply(429, ""), domain.Busy, true, false, false},
		{"concurrent write", reply(449, ""), domain.Busy, true, false, false},
		{"stale replica", reply(404, "1002"), domain.Unavailable, true, false, false},
		{"region moves", reply(403, "3"), domain.Unavailable, true, false, false},
		{"no document", reply(404, ""), domain.NotFound, false, false, false},
		{"no container", reply(404, "1003"), domain.Unavailable, false, false, false},
		{"conflict", reply(409, ""), domain.Conflict, false, false, false},
		{"another etag", reply(412, ""), domain.Conflict, false, false, false},
		{"forbidden", reply(403, ""), domain.Unavailable, false, false, false},
		{"full partition", reply(403, "1014"), domain.Unavailable, false, false, true},
		{"wrong request", reply(400, ""), domain.Unknown, false, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := FailureOf(tc.err)
			require.Equal(t, tc.kind, f.domainKind())
			require.Equal(t, tc.again, f.isRetriable())
			require.Equal(t, tc.mayBeStored, f.mayBeApplied())
			require.Equal(t, tc.full, errors.Is(Classify("save", tc.err), ErrPartitionFull))
			require.Equal(t, tc.kind, domain.KindOf(Classify("save", tc.err)))
		})
	}
}

func TestIsRefused_IncludesOnlyWhatAConditionExplains(t *testing.T) {
	require.True(t, IsRefused(reply(409, "")))
	require.True(t, IsRefused(reply(412, "")))
	require.True(t, IsRefused(reply(404, "")))
	require.False(t, IsRefused(reply(404, "1003")))
	require.False(t, IsRefused(reply(403, "1014")))
	require.False(t, IsRefused(nil))
}
