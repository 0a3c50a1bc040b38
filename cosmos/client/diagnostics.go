package client

import (
	"context"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// noDiagnosticsPolicy stops azcosmos from recording diagnostics of each request, which the hub does not
// read. They are about a quarter of the memory that a request allocates. azcosmos has no option for
// that: it records them in a value of the context of a request. So the request gets back the context of
// its call.
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
