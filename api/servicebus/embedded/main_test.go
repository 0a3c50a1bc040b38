package embedded_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the child process of the durability test if the environment requests it. Otherwise it runs the tests,
// and checks that no goroutine remains.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		sendUntilKilled(dir)
		return
	}
	goleak.VerifyTestMain(m)
}
