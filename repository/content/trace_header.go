package content

import (
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/messagehub/messagehub/domain"
)

// traceHeader is a policy that adds the header traceparent to requests that belong to a trace. The
// signature of a request does not include this header.
type traceHeader struct{}

// Do implements [policy.Policy].
func (traceHeader) Do(r *policy.Request) (*http.Response, error) {
	if c := domain.TraceContextOf(r.Raw().Context()); !c.IsZero() {
		r.Raw().Header.Set("Traceparent", c.Parent())
	}
	return r.Next()
}
