package node

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// A diskWatcher watches the responses of the embedded engine for a failed
// commit. After a commit fails, because the disk is full or broken, the engine
// accepts no writes until it is opened again. If the node continued to run, its
// clients would only wait. The node therefore logs the reason and stops, so
// that its supervisor restarts it.
type diskWatcher struct {
	next   policy.Transporter
	folder string
	failed chan error // buffers one error
}

func newDiskWatcher(next policy.Transporter, folder string) *diskWatcher {
	return &diskWatcher{next, folder, make(chan error, 1)}
}

func (w *diskWatcher) Do(req *http.Request) (*http.Response, error) {
	resp, err := w.next.Do(req)
	if err != nil || resp.StatusCode != http.StatusInternalServerError {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	var problem struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(body, &problem) // a body that is not JSON does not report a disk error
	if _, cause, ok := strings.Cut(problem.Message, disk.ErrBroken.Error()); ok {
		if cause = strings.TrimPrefix(cause, ": "); cause == "" {
			cause = disk.ErrBroken.Error()
		}
		select {
		case w.failed <- fmt.Errorf("data folder %s: %s", w.folder, cause):
		default: // an earlier error is already in the channel
		}
	}
	return resp, nil
}
