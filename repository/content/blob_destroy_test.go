package content_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository/content"
)

// deletions is a transport that responds to the deletion of a container with a status and an error code.
type deletions struct {
	status   int
	code     string
	requests []string
}

func (d *deletions) Do(req *http.Request) (*http.Response, error) {
	d.requests = append(d.requests, req.Method+" "+req.URL.Path+"?"+req.URL.RawQuery)
	return &http.Response{
		StatusCode: d.status, Status: http.StatusText(d.status), Header: http.Header{"X-Ms-Error-Code": {d.code}},
		Body: io.NopCloser(strings.NewReader("")), Request: req,
	}, nil
}

func TestDestroyBlobs_DeletesTheContainer(t *testing.T) {
	for _, tc := range []struct {
		status  int
		code    string
		existed bool
		fails   bool
	}{
		{http.StatusAccepted, "", true, false},
		{http.StatusNotFound, "ContainerNotFound", false, false},
		{http.StatusForbidden, "AuthorizationFailure", false, true},
	} {
		d := &deletions{status: tc.status, code: tc.code}
		existed, err := content.DestroyBlobs(t.Context(), content.BlobOptions{
			Endpoint: "http://127.0.0.1:1/account", Container: "test-1", Key: "a2V5", Transport: d,
		})
		require.Equal(t, tc.existed, existed)
		require.Equal(t, tc.fails, err != nil, err)
		require.Equal(t, "DELETE /account/test-1?restype=container", d.requests[0])
	}
}
