package datafolder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// IdentityFile is the name of the file that contains the identity of a data folder.
const IdentityFile = "identity"

// IdentityFormat is the newest format of the IdentityFile that this version can read.
const IdentityFormat = 1

// A Store is a folder in a data folder.
type Store struct {
	Name string
	File string // a file that exists if the store has data; "" means that an existing folder suffices
	Used bool   // true if the process that opens the data folder uses the store
}

// An Identity distinguishes a data folder from other data folders, and a lost store from a store
// that never existed: the file lists the stores that exist, and each store contains the id. The
// claims of a nil Identity are not checked.
//
// The order of writes makes every crash distinguishable from a loss:
//
//  1. the file, without stores;
//  2. a store, with the id in it. A crash after this step leaves a store that is not listed.
//     This store was never used, and is opened as a new store;
//  3. the name of the store in the file. A listed store is never created again.
//
// An earlier version of the program wrote neither the file nor ids. Its stores are adopted once:
// the file lists them as adopting until each store has the id.
type Identity struct {
	Format  int
	ID      string
	Created time.Time
	Stores  []string // names of stores that contain the id

	adopting []string // names of stores that exist but may not contain the id yet
	isNew    bool
	adopts   bool
	dir      string
	others   map[string]json.RawMessage // members of the file that this version does not interpret
}

// OpenIdentity reads the identity of the folder dir, or writes a new one with the given id. The caller must hold the
// lock of the folder. It fails, and changes nothing, if a used store of an earlier version is missing, or if a store
// has an id but there is no IdentityFile.
func OpenIdentity(dir string, stores []Store, id string, now time.Time) (*Identity, error) {
	i := &Identity{dir: dir}
	text, err := readSmallFile(dir, IdentityFile)
	if err == nil {
		return i, i.decodeFile(text)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	i.Format, i.ID, i.Created, i.isNew = IdentityFormat, id, now.UTC().Truncate(time.Second), true
	if err := i.findUnidentified(stores); err != nil {
		return nil, err
	}
	return i, i.writeFile()
}

// FindUnfit returns an error for each used store that does not fit the IdentityFile of the folder dir: a store that is
// missing or empty, or that belongs to another folder. It reads no file of a store except the MarkFile, and changes
// nothing.
func FindUnfit(dir string, stores []Store) (unfit []error, err error) {
	i := &Identity{dir: dir}
	text, err := readSmallFile(dir, IdentityFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = i.decodeFile(text)
	}
	if err != nil {
		return nil, err
	}
	for _, s := range stores {
		if !s.Used {
			continue
		}
		folder := filepath.Join(dir, s.Name)
		var exists bool
		carried := ""
		if s.File != "" {
			exists, err = s.isPresent(folder)
			carried = i.ID // the id in the file is not read, because the file may be in use
		} else if exists, err = hasEntries(folder); err == nil {
			carried, err = readMark(folder)
		}
		if err == nil {
			err = i.Claim(s.Name).Check(filepath.Join(folder, s.File), exists, carried)
		}
		if err != nil {
			unfit = append(unfit, err)
		}
	}
	return unfit, nil
}

// IsNew reports whether OpenIdentity wrote the identity of an empty folder.
func (i *Identity) IsNew() bool { return i.isNew && !i.adopts }

// IsAdopted reports whether OpenIdentity wrote the identity for the stores of an earlier version.
func (i *Identity) IsAdopted() bool { return i.adopts }

// Claim returns the claim that a store of this folder must fit.
func (i *Identity) Claim(store string) Claim {
	if i == nil {
		return Claim{}
	}
	c := Claim{ID: i.ID, folder: i.dir, store: store, created: i.Created}
	switch {
	case slices.Contains(i.Stores, store):
		c.state = listed
	case slices.Contains(i.adopting, store):
		c.state = adopting
	}
	return c
}

// List adds a store to the IdentityFile. The store must already contain the id, because it was opened with its claim.
func (i *Identity) List(store string) error {
	if i == nil || slices.Contains(i.Stores, store) {
		return nil
	}
	i.Stores = append(i.Stores, store)
	slices.Sort(i.Stores)
	i.adopting = slices.DeleteFunc(i.adopting, func(s string) bool { return s == store })
	return i.writeFile()
}

// findUnidentified finds the stores of a folder that has no IdentityFile.
func (i *Identity) findUnidentified(stores []Store) error {
	var missing []string
	for _, s := range stores {
		folder := filepath.Join(i.dir, s.Name)
		if carried, err := readMark(folder); err != nil {
			return err
		} else if carried != "" {
			return fmt.Errorf("data folder %s: the file %s is missing, and the store %s carries the identity %s: put the file back, or restore the whole folder from one backup",
				i.dir, IdentityFile, s.Name, carried)
		}
		exists, err := s.isPresent(folder)
		if err != nil {
			return err
		}
		if exists {
			i.adopting, i.adopts = append(i.adopting, s.Name), true
		} else if s.Used {
			missing = append(missing, s.Name)
		}
		if !exists && s.File != "" && hasFile(filepath.Join(folder, s.File)) {
			return fmt.Errorf("data folder %s: the store %s is an empty file: restore it from a backup; if this hub has stored nothing yet, remove the folder %s",
				i.dir, filepath.Join(s.Name, s.File), folder)
		}
	}
	if i.adopts && len(missing) > 0 {
		return fmt.Errorf("data folder %s: an earlier version has made it and it holds %q, but not %q: restore what is missing from a backup; if it was never in this folder, start the hub once with the settings of then; if this hub has stored nothing yet, remove the folders",
			i.dir, i.adopting, missing)
	}
	return nil
}

// isPresent reports whether the store has data.
func (s Store) isPresent(folder string) (bool, error) {
	info, err := os.Stat(filepath.Join(folder, s.File))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	return s.File == "" || info.Size() > 0, nil
}

func hasFile(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// identityJSON is the content of the IdentityFile.
type identityJSON struct {
	Format   int       `json:"format"`
	ID       string    `json:"id"`
	Created  time.Time `json:"created"`
	Stores   []string  `json:"stores"`
	Adopting []string  `json:"adopting,omitempty"`
}

func (i *Identity) decodeFile(text []byte) error {
	var stored identityJSON
	err := errors.Join(json.Unmarshal(text, &stored), json.Unmarshal(text, &i.others))
	if err == nil && stored.Format > IdentityFormat {
		return fmt.Errorf("data folder %s: its file %s has format %d, and this version reads %d; use the version that wrote it, or another folder",
			i.dir, IdentityFile, stored.Format, IdentityFormat)
	}
	if err != nil || stored.ID == "" || stored.Format < 1 {
		return errors.Join(fmt.Errorf("data folder %s: its file %s is damaged: restore it from the backup of this folder", i.dir, IdentityFile), err)
	}
	i.Format, i.ID, i.Created, i.Stores, i.adopting = stored.Format, stored.ID, stored.Created, stored.Stores, stored.Adopting
	return nil
}

// writeFile replaces the IdentityFile. A crash before the rename leaves the previous file and a draft, which the next
// write replaces.
func (i *Identity) writeFile() error {
	members := make(map[string]any, len(i.others)+5)
	for name, value := range i.others {
		members[name] = value
	}
	members["format"], members["id"], members["created"] = i.Format, i.ID, i.Created
	members["stores"] = append([]string{}, i.Stores...)
	delete(members, "adopting")
	if len(i.adopting) > 0 {
		members["adopting"] = i.adopting
	}
	text, err := json.MarshalIndent(members, "", "  ")
	if err != nil {
		return err
	}
	return ReplaceFile(i.dir, IdentityFile, append(text, '\n'))
}

// ReplaceFile durably and atomically replaces a file in a folder.
func ReplaceFile(dir, name string, text []byte) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // the error does not matter, because all writes are synced
	draft := name + draftSuffix
	if err := root.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, PrivateFile)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := root.Rename(draft, name); err != nil {
		return err
	}
	return SyncIn(root, ".")
}
