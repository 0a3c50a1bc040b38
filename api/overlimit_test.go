package api_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain/hub"
)

func TestOverLimit_AnswersOnlyProbes(t *testing.T) {
	f := serve(t, func(o *api.Options, _ *hub.Options) { o.OverLimit = func(context.Context) bool { return true } })
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/api/monitor/live"} {
		f.do("GET", path, "").wants(200)
	}
	a := f.do("GET", "/v1/peek", "")
	a.problem(429, "busy")
	require.Equal(t, "1", a.header.Get("Retry-After"))
	f.do("POST", "/v1/data-available", array(newEvent(1))).problem(429, "busy")
}
