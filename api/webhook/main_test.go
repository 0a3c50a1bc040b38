package webhook_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails if goroutines remain after the tests. It also sets a proxy that does not exist, so
// a call that uses the proxy from the environment fails.
func TestMain(m *testing.M) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		os.Setenv(name, "http://proxy.example:3128")
	}
	goleak.VerifyTestMain(m)
}
