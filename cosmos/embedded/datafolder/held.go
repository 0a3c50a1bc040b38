package datafolder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// HeldFolder is the folder to which removed files are moved during a Hold. No stored object has this name.
const HeldFolder = "+held"

// A Remover removes files and folders from a folder. During a Hold, it moves them to HeldFolder, where only [Hold.Each]
// finds them. The zero value is ready to use. A Remover is safe for concurrent use.
type Remover struct {
	mu   sync.RWMutex
	hold *Hold
}

// A Hold retains the files and folders that a Remover removes, until Release is called.
type Hold struct {
	remover *Remover
	root    *os.Root

	mu      sync.Mutex
	removed []string // removed[n] is the original name of the file n in HeldFolder
}

// ErrHeld reports that Hold was called before the last Hold was released.
var ErrHeld = errors.New("the last hold was not released")

// CleanHeld removes the files that a crash has left in HeldFolder. It must be called before the folder is used.
func CleanHeld(root *os.Root) error { return root.RemoveAll(HeldFolder) }

// Hold starts to retain the files that are removed from root. It fails with ErrHeld if the last
// Hold was not released.
func (r *Remover) Hold(root *os.Root) (*Hold, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hold != nil {
		return nil, ErrHeld
	}
	if err := errors.Join(CleanHeld(root), root.Mkdir(HeldFolder, PrivateFolder)); err != nil {
		return nil, err
	}
	r.hold = &Hold{remover: r, root: root}
	return r.hold, nil
}

// Remove calls remove with a name. During a Hold, it instead moves the file or folder of this name to HeldFolder.
func (r *Remover) Remove(name string, remove func(name string) error) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.hold == nil {
		return remove(name)
	}
	return r.hold.moveAside(name)
}

func (h *Hold) moveAside(name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.root.Rename(name, path.Join(HeldFolder, strconv.Itoa(len(h.removed)))); err != nil {
		return err
	}
	h.removed = append(h.removed, name)
	return nil
}

// Each calls visit with every file that was in the folder when the Hold began, and its original name. It may also visit
// files that were created later. It skips the files and folders in skip. A file that is removed while Each runs may be
// visited twice.
func (h *Hold) Each(skip []string, visit func(name string, file *os.File, info fs.FileInfo) error) error {
	if err := walkFiles(h.root, ".", append(skip[:len(skip):len(skip)], HeldFolder), func(name string) error {
		return visitFile(h.root, name, name, visit)
	}); err != nil {
		return err
	}
	h.mu.Lock()
	removed := h.removed[:len(h.removed):len(h.removed)]
	h.mu.Unlock()
	for i, name := range removed {
		held := path.Join(HeldFolder, strconv.Itoa(i))
		if err := walkFiles(h.root, held, nil, func(file string) error {
			return visitFile(h.root, file, name+strings.TrimPrefix(file, held), visit)
		}); err != nil {
			return err
		}
	}
	return nil
}

// walkFiles calls visit for every file at or below from. It skips files that are removed while it runs.
func walkFiles(root *os.Root, from string, skip []string, visit func(name string) error) error {
	return fs.WalkDir(root.FS(), from, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		}
		switch {
		case slices.Contains(skip, name) && entry.IsDir():
			return fs.SkipDir
		case slices.Contains(skip, name), entry.IsDir():
			return nil
		case !entry.Type().IsRegular():
			return fmt.Errorf("%s is a link, or no file of this program: put back the file that was there", name)
		}
		return visit(name)
	})
}

func visitFile(root *os.Root, at, name string, visit func(string, *os.File, fs.FileInfo) error) error {
	file, err := root.Open(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the file was moved to HeldFolder, where Each visits it
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // only read
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return visit(name, file, info)
}

// Release ends the hold and removes the retained files.
func (h *Hold) Release() error {
	h.remover.mu.Lock()
	h.remover.hold = nil
	h.remover.mu.Unlock()
	return CleanHeld(h.root)
}
