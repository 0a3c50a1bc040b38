package node

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
)

// writeSecretFile creates a file atomically, with its complete content. It
// fails with fs.ErrExist if the name already exists, even as a link.
func writeSecretFile(root *os.Root, name, text string) (err error) {
	draft := "." + name + "-" + rand.Text()
	f, err := root.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, datafolder.PrivateFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Remove(draft)) }()
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := root.Link(draft, name); err != nil {
		return err
	}
	return datafolder.SyncIn(root, ".")
}

// readSecretFile reads a file that only the current user may read. It fails
// with fs.ErrNotExist if the file does not exist. Any other error describes the
// fault, and ends with remedy.
func readSecretFile(root *os.Root, name, remedy string) (string, error) {
	before, err := root.Lstat(name) // checked before opening, because opening a named pipe would block
	if err != nil {
		return "", err
	}
	if !before.Mode().IsRegular() {
		return "", fmt.Errorf("it is a link, or no file; %s", remedy)
	}
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // nothing was written to f
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", err
	case !os.SameFile(before, info):
		return "", errors.New("it was replaced while it was read; try again")
	case config.IsOpenToOthers(info):
		return "", fmt.Errorf("its mode %04o lets others read it; %s", info.Mode().Perm(), remedy)
	}
	const limit = 1 << 10
	text, err := io.ReadAll(io.LimitReader(f, limit))
	return string(text), err
}
