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

// MarkFile is the file in a store's folder that contains the id of the data folder.
const MarkFile = "+identity"

// draftSuffix is the suffix of the name of a file that is not completely written.
const draftSuffix = ".new"

var (
	// ErrStoreLost reports a store that is missing or empty although the data folder lists it.
	ErrStoreLost = errors.New("a store is lost")
	// ErrStoreForeign reports a store that belongs to a different data folder.
	ErrStoreForeign = errors.New("the store belongs to another folder")
)

// A claimState tells what the identity file of the data folder says about a store.
type claimState int

const (
	unlisted claimState = iota // the store was never used: it may be missing, or left without data by a crash
	adopting                   // the store was created by an earlier version, so it may not contain the id yet
	listed                     // the store exists and contains the id
)

// A Claim tells which store may be opened in a folder. The zero value allows every store and writes no id, for a store
// outside a data folder.
type Claim struct {
	ID string // id of the data folder

	folder  string
	store   string
	created time.Time
	state   claimState
}

// Check returns an error if the store at path does not fit the claim. exists tells whether the store exists; carried is
// the id in the store. If Check returns nil and carried differs from the id of the claim, the caller must write the
// claim's id to the store.
func (c Claim) Check(path string, exists bool, carried string) error {
	switch {
	case c.ID == "":
		return nil
	case !exists && c.state == unlisted, exists && carried == c.ID:
		return nil
	case !exists:
		return fmt.Errorf("data folder %s: %s is missing or empty, and the folder, made %s, holds a store %s: mount the volume of the store, or restore the whole folder from one backup (%w)",
			c.folder, path, c.created.Format(time.DateOnly), c.store, ErrStoreLost)
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

// Make creates the folder of a store, like the function [Make], and writes a file with the id. If an existing folder
// does not fit the claim, Make fails and changes nothing.
func (c Claim) Make(dir string) error { return c.MakeOn(dir, Sync) }

// MakeOn is Make with sync in place of [Sync].
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
	// A crash before this line leaves an empty folder, which counts as a missing store.
	return ReplaceFile(dir, MarkFile, []byte(c.ID+"\n"))
}

// hasEntries reports whether a folder contains anything besides a draft of the MarkFile.
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

// readMark returns the id in the MarkFile of a store, or "" if none exists.
func readMark(dir string) (string, error) {
	text, err := readSmallFile(dir, MarkFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// maxSmallFile is the maximum size of a file that readSmallFile reads.
const maxSmallFile = 64 << 10

// readSmallFile reads a file in a folder. It does not follow links, because a link could point to a private file.
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
