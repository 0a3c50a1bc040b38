package api_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain/hub"
)

func TestForwardedRequests_AreRefusedByALocalHub(t *testing.T) {
	headers := []string{"Forwarded", "forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "x-forwarded-anything", "Via"}
	f := serve(t, local)
	f.post(202, newEvent(1))
	for _, header := range headers {
		for _, path := range []string{"/v1/peek", admin} {
			p := f.do("GET", path, "", header, "192.0.2.1").problem(400, "invalid")
			require.Contains(t, strings.ToLower(p.Detail), strings.ToLower(header))
			require.Contains(t, p.Detail, "--insecure")
			require.NotContains(t, p.Detail, "192.0.2.1")
		}
	}
	f.do("GET", "/v1/peek", "").wants(200)

	f = serve(t, func(o *api.Options, _ *hub.Options) { o.IsOwnHost = isOwnHost })
	f.post(202, newEvent(1))
	for _, header := range headers {
		f.do("GET", "/v1/peek", "", header, "192.0.2.1").wants(200)
		f.do("GET", admin, "", header, "192.0.2.1", "Authorization", "").problem(401, "missing-token")
	}
	req := f.newRequest("GET", "/v1/peek", nil)
	req.Host = "evil.example"
	f.send(req).problem(400, "invalid")
}
