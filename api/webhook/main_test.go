package webhook_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain checks that no test leaves a goroutine behind. The environment names a proxy that
// does not exist, so a call that used it would fail.
func TestMain(m *testing.M) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		os.Setenv(name, "http://proxy.example:3128")
	}
	goleak.VerifyTestMain(m)
}
