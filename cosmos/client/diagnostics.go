package client

import (
	"context"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// noDiagnosticsPolicy stops azcosmos from recording diagnostics of each request. The hub does not read
// the diagnostics, and they take about a quarter of the memory that a request allocates. azcosmos has no
// option to disable them, but it records them in a value of the request's context. So the policy replaces
// that context with the context of the call.
type noDiagnosticsPolicy struct{}

func (noDiagnosticsPolicy) Do(req *policy.Request) (*http.Response, error) {
	if ctx, ok := req.Raw().Context().Value(callContextKey{}).(context.Context); ok {
		req = req.WithContext(ctx)
	}
	return req.Next()
}

type callContextKey struct{}

// withoutDiagnostics returns a request context for which noDiagnosticsPolicy stops the diagnostics.
func withoutDiagnostics(ctx context.Context) context.Context {
	return context.WithValue(ctx, callContextKey{}, ctx)
}
