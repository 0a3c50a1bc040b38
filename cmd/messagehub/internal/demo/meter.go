package demo

import (
	"context"
	"net/http"
	"strconv"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// A meter sums the request units of the embedded engine by cause: an actor, or
// one of the constants below. wrapHandler stores the cause in the context of an
// HTTP request, and wrapTransport reads the cause from the context of a request
// to the engine. The hub's background work has no cause.
type meter struct {
	mu    sync.Mutex
	units map[string]float64
}

// Causes that are not actors.
const (
	causeSend       = "send"
	causeBackground = ""
)

type causeKey struct{}

func newMeter() *meter { return &meter{units: make(map[string]float64)} }

func (m *meter) wrapHandler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cause := causeSend
		if actor := r.Header.Get("X-Actor-Id"); actor != "" {
			cause = actor
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), causeKey{}, cause)))
	})
}

func (m *meter) wrapTransport(next policy.Transporter) policy.Transporter { return metered{m, next} }

type metered struct {
	m    *meter
	next policy.Transporter
}

func (t metered) Do(req *http.Request) (*http.Response, error) {
	resp, err := t.next.Do(req)
	if err != nil {
		return nil, err
	}
	if charge, err := strconv.ParseFloat(resp.Header.Get("x-ms-request-charge"), 64); err == nil {
		cause, _ := req.Context().Value(causeKey{}).(string)
		t.m.mu.Lock()
		t.m.units[cause] += charge
		t.m.mu.Unlock()
	}
	return resp, nil
}

// unitsOf returns the request units counted so far for a cause.
func (m *meter) unitsOf(cause string) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.units[cause]
}
