//go:build !unix

package embedded

import (
	"io"
	"os"
)

// lockFile locks nothing here: it is up to the operator to use a folder once.
func lockFile(root *os.Root, name string) (io.Closer, error) {
	return root.OpenFile(name, os.O_RDWR|os.O_CREATE, privateFile)
}
