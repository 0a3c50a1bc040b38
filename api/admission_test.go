package api_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain/hub"
)

func TestBodiesThatFindNoRoomAreAskedToComeAgain(t *testing.T) {
	f := serve(t, func(o *api.Options, _ *hub.Options) {
		o.Limits.Bodies = 1 << 20
		o.Deadline = 400 * time.Millisecond // of which a quarter is patience
	})
	body, slow := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/v1/data-available", body)
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	answered := make(chan error)
	go func() {
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if err == nil {
			err = resp.Body.Close()
		}
		answered <- err
	}()
	_, err = io.WriteString(slow, "[") // it has the only megabyte, and now it takes its time
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		got := f.do("POST", "/v1/data-available", "[]", "Content-Type", "application/json")
		return got.status == http.StatusTooManyRequests
	}, 10*time.Second, time.Millisecond)

	require.NoError(t, slow.CloseWithError(io.ErrUnexpectedEOF))
	<-answered
	require.Eventually(t, func() bool {
		return f.do("POST", "/v1/data-available", "[]", "Content-Type", "application/json").status == http.StatusAccepted
	}, 10*time.Second, time.Millisecond, "a body that has gone gives its room back")
	require.NotEmpty(t, strings.TrimSpace(f.logs.String()))
}
