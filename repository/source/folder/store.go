// Package folder reads a folder in the layout of [content.Dir], such as the folder of the hub's own
// content. It has one version of each object, the null version, and no links. It reports only the size
// of an object: the modification time of the file is not the time that the writer of the object reported.
package folder

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/content"
	"github.com/messagehub/messagehub/repository/source"
)

// A Store reads a folder. It accepts any bucket name. It is safe for concurrent use.
type Store struct{ root *os.Root }

var _ repository.Source = (*Store)(nil)

// Open opens a folder for reading. The caller closes it.
func Open(dir string) (*Store, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, domain.Errorf(domain.Unavailable, "open folder: %w", err)
	}
	return &Store{root}, nil
}

// Close releases the folder.
func (s *Store) Close() error { return s.root.Close() }

// List implements [repository.Source]. A cursor is the last key before the page.
func (s *Store) List(ctx context.Context, _, prefix, cursor string, limit int) (repository.SourcePage, error) {
	w := folderWalk{ctx: ctx, root: s.root, prefix: prefix, after: cursor, limit: limit}
	if err := w.visitFolder(".", ""); err != nil {
		return repository.SourcePage{}, classifyError(ctx, err)
	}
	page := repository.SourcePage{Objects: w.found}
	if len(page.Objects) > limit { // the additional object means that there is another page
		page.Objects = page.Objects[:limit]
		page.Cursor = page.Objects[limit-1].Key
	}
	return page, nil
}

// Stat implements [repository.Source].
func (s *Store) Stat(ctx context.Context, name domain.ObjectName, version *domain.VersionID) (repository.SourceObject, error) {
	file, err := content.FilePath(name.Key())
	if err != nil || version != nil && *version != (domain.VersionID{}) {
		return repository.SourceObject{}, errNoObject
	}
	info, err := s.root.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		if _, err := s.root.Stat("."); err != nil {
			return repository.SourceObject{}, source.NoBucket("the folder is gone")
		}
		return repository.SourceObject{}, errNoObject
	}
	if err != nil {
		return repository.SourceObject{}, classifyError(ctx, err)
	}
	return objectOf(name.Key(), info), nil
}

// Open implements [repository.Source].
func (s *Store) Open(ctx context.Context, name domain.ObjectName) (io.ReadCloser, error) {
	file, err := content.FilePath(name.Key())
	if err != nil {
		return nil, errNoObject
	}
	info, err := s.root.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, errNoObject
	}
	if err != nil {
		return nil, classifyError(ctx, err)
	}
	opened, err := s.root.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoObject
	}
	if err != nil {
		return nil, classifyError(ctx, err)
	}
	return opened, nil
}

var errNoObject = domain.Errorf(domain.NotFound, "the folder has no such object")

// Link implements [repository.Source].
func (*Store) Link(context.Context, domain.ObjectName, domain.VersionID, repository.LinkOptions) (string, error) {
	return "", repository.ErrNoLinks
}

func objectOf(key string, info fs.FileInfo) (object repository.SourceObject) {
	size := info.Size()
	object.Key, object.Size, object.Reason = key, &size, domain.Crawl
	return object
}

// A folderWalk finds objects in the order of their keys. It skips folders that cannot contain objects of
// the page.
type folderWalk struct {
	ctx    context.Context //nolint:containedctx // the context of the call
	root   *os.Root
	prefix string
	after  string
	limit  int
	found  []repository.SourceObject // up to limit+1 objects, so that the caller knows whether there are more
}

// A folderEntry is a file or a folder. The keys of all objects in a folder begin with its key.
type folderEntry struct {
	key, path string
	isFolder  bool
}

// mayHave reports whether the page may have the object of a file, or objects in a folder.
func (w *folderWalk) mayHave(e folderEntry) bool {
	if !e.isFolder {
		return strings.HasPrefix(e.key, w.prefix) && e.key > w.after
	}
	return (strings.HasPrefix(e.key, w.prefix) || strings.HasPrefix(w.prefix, e.key)) && (e.key > w.after || strings.HasPrefix(w.after, e.key))
}

// visitFolder adds the objects in a folder. key is the prefix of their keys.
func (w *folderWalk) visitFolder(folder, key string) error {
	entries, err := w.readFolder(folder, key)
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b folderEntry) int { return cmp.Compare(a.key, b.key) })
	for _, e := range entries {
		switch {
		case len(w.found) > w.limit:
			return nil
		case !w.mayHave(e):
			continue
		case e.isFolder:
			err = w.visitFolder(e.path, e.key)
		default:
			err = w.add(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readFolder returns the entries of a folder. A subfolder whose name ends with a plus sign continues a
// path segment that is too long for one file name; its entries count as entries of the folder.
func (w *folderWalk) readFolder(folder, key string) (entries []folderEntry, err error) {
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	list, err := fs.ReadDir(w.root.FS(), folder)
	if errors.Is(err, fs.ErrNotExist) && folder != "." { // the folder was removed during the walk
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, in := range list {
		name := in.Name()
		at := path.Join(folder, name)
		begin, isContinued := strings.CutSuffix(name, "+")
		object, isObject := strings.CutSuffix(name, "=")
		switch {
		case strings.HasPrefix(name, "+"): // a file or folder that the store uses internally
		case in.IsDir() && isContinued:
			more, err := w.readFolder(at, key+begin)
			if err != nil {
				return nil, err
			}
			entries = append(entries, more...)
		case in.IsDir():
			entries = append(entries, folderEntry{key + name + "/", at, true})
		case in.Type().IsRegular() && isObject:
			entries = append(entries, folderEntry{key + object, at, false})
		}
	}
	return entries, nil
}

func (w *folderWalk) add(e folderEntry) error {
	info, err := w.root.Lstat(e.path)
	if errors.Is(err, fs.ErrNotExist) { // the file was removed during the walk
		return nil
	}
	if err == nil {
		w.found = append(w.found, objectOf(e.key, info))
	}
	return err
}

// classifyError adds a domain.Kind to the error of a call.
func classifyError(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	return domain.Errorf(domain.Unavailable, "the folder cannot be read: %w", err)
}
