package content_test

import (
	"net/http"
	"testing"
)

// closing makes HTTP clients that close all their connections.
type closing struct{}

func (closing) client(t testing.TB) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 10}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
