//go:build unix

package crashpoint

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// deleteContent deletes the content of an open bundle from the folder of the hub, and reports whether it was
// there. The next Peek finds that it is missing, marks the bundle, and the domain makes it again: the same
// bytes, so the ledger accepts no others.
func (l *load) deleteContent(id string) (isDeleted bool, err error) {
	root, err := os.OpenRoot(l.content)
	if err != nil {
		return false, err
	}
	err = fs.WalkDir(root.FS(), ".", func(file string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(entry.Name(), id+"-") {
			err = root.Remove(file)
			isDeleted = isDeleted || err == nil
		}
		if errors.Is(err, fs.ErrNotExist) { // the hub has removed it meanwhile
			return nil
		}
		return err
	})
	return isDeleted, errors.Join(err, root.Close())
}
