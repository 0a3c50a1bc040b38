//go:build !unix

package embedded

import (
	"io"
	"os"
)

// lockFile locks nothing here: it is up to the operator to use a folder once.
func lockFile(path string) (io.Closer, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}
