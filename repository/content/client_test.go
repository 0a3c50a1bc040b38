package content_test

import (
	"net/http"
	"testing"
)

// newHTTPClient returns a client whose idle connections are closed at the end of the test.
func newHTTPClient(t testing.TB) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 10}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
