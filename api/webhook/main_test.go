package webhook_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain checks that no test leaves a goroutine running. The environment names a proxy that does
// not exist, so a call through this proxy fails.
func TestMain(m *testing.M) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		os.Setenv(name, "http://proxy.example:3128")
	}
	goleak.VerifyTestMain(m)
}
