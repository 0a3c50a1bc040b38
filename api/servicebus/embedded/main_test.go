package embedded_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain also is the child process of the durability test, and checks that
// no test leaves a goroutine behind.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		sendUntilKilled(dir)
		return
	}
	goleak.VerifyTestMain(m)
}
