package embedded_test

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain also is the child process of the durability test, and checks that
// no test leaves a goroutine behind.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		writeUntilKilled(dir)
		return
	}
	if raced { // with random tests of one client
		if err := flag.Set("rapid.checks", "25"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
