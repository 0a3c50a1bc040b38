package domainclient_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails if goroutines remain after the tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
