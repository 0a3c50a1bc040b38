//go:build unix

package crashsites

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	blobs "github.com/messagehub/messagehub/repository/content/embedded"
)

// deleteContent deletes the content of an open bundle from the folder of the hub, and returns the names of the deleted
// files. The domain produces the same bytes again, so the ledger accepts no other bytes.
func (l *clientLoad) deleteContent(id string) (names []string, err error) {
	root, err := os.OpenRoot(l.content)
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(root.FS(), ".", func(file string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(entry.Name(), id+"-") {
			if err = root.Remove(file); err == nil {
				names = append(names, strings.TrimSuffix(file, "="))
			}
		}
		if errors.Is(err, fs.ErrNotExist) { // the hub has removed the file
			return nil
		}
		return err
	})
	return names, errors.Join(err, root.Close())
}

// reportDeleted notifies the hub that the files with these names were deleted. It sends the events that a storage
// account would send, and retries until the hub has stored the events.
func (l *clientLoad) reportDeleted(ctx context.Context, names []string) error {
	var events []map[string]any
	for _, name := range names {
		now := time.Now()
		events = append(events, map[string]any{
			"id": name, "eventType": "Microsoft.Storage.BlobDeleted", "eventTime": now.Format(time.RFC3339Nano),
			"topic":   "/providers/Microsoft.Storage/storageAccounts/" + blobs.WellKnownAccount,
			"subject": "/blobServices/default/containers/messagehub-content/blobs/" + name,
			"data":    map[string]string{"api": "DeleteBlob", "sequencer": fmt.Sprintf("%048X", now.UnixNano())},
		})
	}
	body, err := json.Marshal(events)
	if err != nil {
		return err
	}
	return l.retryUntilDone(ctx, func() error {
		a, err := l.sendRequest(ctx, http.MethodPost, objectEventsPath, "", body)
		if err == nil && !bytes.Contains(a.body, []byte(`"refused":[]`)) {
			return l.ledger.Report("events of deleted contents are answered %s", a.body)
		}
		return err
	})
}

const objectEventsPath = "/v1/object-events"

// loseContent deletes the content of an open bundle that an actor has received, and fetches the bundle again. If
// isReported is true, an event notifies the hub of the deletion before the bundle is fetched again.
func (l *clientLoad) loseContent(ctx context.Context, actor, id string, isReported bool) error {
	names, err := l.deleteContent(id)
	if err != nil || len(names) == 0 {
		return err
	}
	if isReported {
		if err := l.reportDeleted(ctx, names); err != nil {
			return fmt.Errorf("report deleted contents: %w", err)
		}
	}
	again, err := l.peekOnce(ctx, actor, isReported)
	if err == nil && again != id {
		return l.ledger.Report("%s was given bundle %s and then, when its content was deleted, %q", actor, id, again)
	}
	return err
}
