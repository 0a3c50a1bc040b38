package datafolder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// MarkFile is the file in a store's folder that holds the id of its data folder.
const MarkFile = "+identity"

// draftSuffix is the suffix in the name of a file that is being written.
const draftSuffix = ".new"

var (
	// ErrStoreLost reports a store that the data folder lists although the store is missing or empty.
	ErrStoreLost = errors.New("a store is lost")
	// ErrStoreForeign reports a store that does not belong to its data folder.
	ErrStoreForeign = errors.New("the store belongs to another folder")
)

// A claimState says what the identity file of the data folder states about a store.
type claimState int

const (
	unlisted claimState = iota // the store was never used: it may be missing, or be the remains of a crash without data
	adopting                   // the store exists, and was created by an earlier version: it may not have the id yet
	listed                     // the store exists and has the id
)

// A Claim says which store may be opened in a folder. The zero value is for a store that belongs to
// no data folder: every store is allowed, and no id is written.
type Claim struct {
	ID string // id of the data folder

	folder  string
	store   string
	created time.Time
	state   claimState
}

// Check returns an error if the store at path does not fit the claim. exists says whether the
// store exists, and carried is the id in the store. If Check returns nil and carried is not the id
// of the claim, the caller writes the claim's id to the store.
func (c Claim) Check(path string, exists bool, carried string) error {
	switch {
	case c.ID == "":
		return nil
	case !exists && c.state == unlisted, exists && carried == c.ID:
		return nil
	case !exists:
		return fmt.Errorf("data folder %s: %s is missing or empty, and the folder, made %s, holds a store %s: restore the store from the backup that the rest of the folder is from; to lose what it held and start it empty, remove %q from the file %s (%w)",
			c.folder, path, c.created.Format(time.DateOnly), c.store, c.store, filepath.Join(c.folder, IdentityFile), ErrStoreLost)
	case carried != "":
		return fmt.Errorf("data folder %s: %s belongs to another data folder, that with the identity %s, and this one is %s: put back the store of this folder, or restore the whole folder from one backup (%w)",
			c.folder, path, carried, c.ID, ErrStoreForeign)
	case c.state == adopting:
		return nil
	default:
		return fmt.Errorf("data folder %s: %s carries no identity, and the stores of this folder carry %s: put back the store of this folder, or restore the whole folder from one backup (%w)",
			c.folder, path, c.ID, ErrStoreForeign)
	}
}

// Make is [Make] for the folder of a store, and writes a file with the id to the folder. It fails,
// and changes nothing, if the folder does not fit the claim.
func (c Claim) Make(dir string) error { return c.MakeOn(dir, Sync) }

// MakeOn is Make with the function sync instead of [Sync].
func (c Claim) MakeOn(dir string, sync func(dir string) error) error {
	if c.ID == "" {
		return MakeOn(dir, sync)
	}
	exists, err := hasEntries(dir)
	if err != nil {
		return err
	}
	carried, err := readMark(dir)
	if err != nil {
		return err
	}
	if err := c.Check(dir, exists, carried); err != nil {
		return err
	}
	if err := MakeOn(dir, sync); err != nil || carried == c.ID {
		return err
	}
	// A crash before the file is written leaves an empty folder, which counts as a missing store.
	return ReplaceFile(dir, MarkFile, []byte(c.ID+"\n"))
}

// hasEntries reports whether a folder exists and contains more than a draft of the MarkFile.
func hasEntries(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, entry := range entries {
		if entry.Name() != MarkFile+draftSuffix {
			return true, nil
		}
	}
	return false, nil
}

// readMark returns the id in the folder of a store, or "" if the folder has no id.
func readMark(dir string) (string, error) {
	text, err := readSmallFile(dir, MarkFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// maxSmallFile is the maximum size of a file that readSmallFile reads.
const maxSmallFile = 64 << 10

// readSmallFile reads a file of a folder. It does not follow links: the target may be a file
// that must stay private.
func readSmallFile(dir, name string) (text []byte, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if path := filepath.Join(dir, name); !info.Mode().IsRegular() || info.Size() > maxSmallFile {
		return nil, fmt.Errorf("%s is a link, or no file of this program: put back the file that was there", path)
	}
	return root.ReadFile(name)
}
