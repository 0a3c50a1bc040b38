//go:build unix

package crashsites

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var buildDir string

// TestMain runs the tests, or a child process if the environment has its configuration.
func TestMain(m *testing.M) {
	if text := os.Getenv(ordersVariable); text != "" {
		if err := runNodeProcess(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	var err error
	if buildDir, err = os.MkdirTemp("", "messagehub-crashsites-"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		if err := os.RemoveAll(buildDir); err != nil {
			panic(err)
		}
		os.Exit(status)
	}))
}

// buildProgram builds messagehub on the first call, and returns its path.
func buildProgram(t *testing.T) string {
	t.Helper()
	path, err := build()
	require.NoError(t, err)
	return path
}

var build = sync.OnceValues(func() (string, error) {
	path := filepath.Join(buildDir, "messagehub")
	out, err := exec.Command("go", "build", "-o", path, "github.com/messagehub/messagehub/cmd/messagehub").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})
