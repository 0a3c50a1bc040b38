package embedded_test

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests and checks that no goroutine leaks. In the child process of the durability test, it instead
// writes until the process is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		writeUntilKilled(dir)
		return
	}
	if raced { // fewer random tests with the race detector, because a single client cannot race
		if err := flag.Set("rapid.checks", "25"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
