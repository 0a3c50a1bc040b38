package embedded_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the child process of the durability test if an environment variable is set. Otherwise it runs the tests
// and checks that no goroutine leaks.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		sendUntilKilled(dir)
		return
	}
	goleak.VerifyTestMain(m)
}
